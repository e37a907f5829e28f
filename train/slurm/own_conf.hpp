// SPDX-License-Identifier: BSD-3-Clause
//
// Slurm's configuration as this very process has read it, or was told it by slurmd. No question to slurmctld:
// each node's prolog would ask it. slurm.h has the structure, and no function for it.
#pragma once

#include <string>
#include <string_view>

#include <dlfcn.h>
#include <sys/types.h>

#include "common/result.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::libslurm {

inline result<const slurm_conf_t*> own_conf() {
    const auto* conf = static_cast<const slurm_conf_t*>(::dlsym(RTLD_DEFAULT, "slurm_conf"));
    // The prolog's has the number alone, and no name of the user, from 23.11 on.
    if (!conf || !conf->cluster_name)
        return fail(errc::internal, "Slurm's configuration is not in this process");
    return conf;
}

/// SelectType.
inline result<std::string> select_type() {
    BANYAN_TRY(const auto conf, own_conf());
    if (!conf->select_type || !*conf->select_type)
        return fail(errc::internal, "the configuration in this process does not say its SelectType");
    return std::string(conf->select_type);
}

/// Another select plugin than ours chooses the nodes: then no plan comes from slurmctld, for any job. An
/// error: it is not known.
inline result<bool> plans_without_select() {
    BANYAN_TRY(const auto type, select_type());
    return type != "select/cons_tres_banyan";
}

}  // namespace banyan::libslurm
