// SPDX-License-Identifier: GPL-2.0-or-later
//
// The functions of the plugin that banyan leaves to select/cons_tres.
#include "slurmctld-plugin/release/release.hpp"
//
#include <type_traits>

#include "slurmctld-plugin/cons_tres/host_program.hpp"
#include "slurmctld-plugin/cons_tres/inherited.hpp"

namespace banyan::slurm {
namespace {

/// Slurm's own word for "did not work", where select/cons_tres cannot be used.
template <class T>
T no_answer() {
    if constexpr (std::is_pointer_v<T>)
        return nullptr;
    else if constexpr (!std::is_void_v<T>)
        return SLURM_ERROR;
}

}  // namespace
}  // namespace banyan::slurm

extern "C" {
#define BANYAN_OURS(name, member)
#define BANYAN_THEIRS(name, member, result, parameters, arguments)                   \
    __attribute__((visibility("default"))) result select_p_##name parameters {       \
        banyan::slurm::was_called();                                                 \
        const auto* theirs = banyan::slurm::inherited_plugin();                      \
        return theirs ? theirs->name arguments : banyan::slurm::no_answer<result>(); \
    }
BANYAN_SELECT_TABLE(BANYAN_OURS, BANYAN_THEIRS)
}  // extern "C"
