// SPDX-License-Identifier: BSD-3-Clause
//
// A job's plan as the session that its checkpoint daemons open. Knows no Slurm.
#pragma once

#include <string>

#include <sys/types.h>

#include "ckptd/protocol/protocol.hpp"
#include "common/result.hpp"
#include "train/options.hpp"
#include "train/plan.hpp"

namespace banyan::spank {

/// not_found: the plan does not name it.
result<std::string> own_address(const train::plan& plan, const std::string& node);

/// The session of `plan` on `node`, with what --train-ckpt asks for. not_found: this node does not know the
/// user.
result<ckpt::session_request> make_session(const train::plan& plan, const train::checkpoint_options& asked,
                                           uid_t uid, const std::string& node);

}  // namespace banyan::spank
