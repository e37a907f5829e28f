// SPDX-License-Identifier: BSD-3-Clause
//
// spank_banyan.so: the C edge. Each hook is guarded and goes to the function of its context.
#include "common/guard.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_args.hpp"

#define BANYAN_EXPORT __attribute__((visibility("default")))

namespace {

using namespace banyan::spank;

// A SPANK hook that fails in the wrong place drains the node or loses the job: whatever we throw, Slurm goes
// on.
template <class Body>
int hook(const char* name, Body body) {
    banyan::guard_sink = [](const char* entry, const char* what) {
        slurm_error("banyan: %s: %s", entry, what);
    };
    return banyan::guarded(
        name, [] { return SLURM_SUCCESS; }, body);
}

bool in(spank_context_t wanted) { return spank_context() == wanted; }

}  // namespace

extern "C" {

extern BANYAN_EXPORT const char plugin_name[];
const char plugin_name[] = "banyan";
extern BANYAN_EXPORT const char plugin_type[];
const char plugin_type[] = "spank";
extern BANYAN_EXPORT const unsigned int plugin_version;
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
extern BANYAN_EXPORT const unsigned int spank_plugin_version;
const unsigned int spank_plugin_version = 1;

BANYAN_EXPORT int slurm_spank_init(spank_t sp, int, char**) {
    return hook("slurm_spank_init", [&] {
        if (in(S_CTX_LOCAL)) prepare_srun();
        return in(S_CTX_SLURMD) ? SLURM_SUCCESS : register_options(sp);
    });
}

BANYAN_EXPORT int slurm_spank_init_post_opt(spank_t sp, int ac, char** av) {
    return hook("slurm_spank_init_post_opt", [&]() -> int {
        if (in(S_CTX_LOCAL) || in(S_CTX_ALLOCATOR)) return settle_options(sp);
        if (in(S_CTX_REMOTE)) return open_step(sp, parse_settings(ac, av));
        return SLURM_SUCCESS;
    });
}

BANYAN_EXPORT int slurm_spank_local_user_init(spank_t sp, int, char**) {
    return hook("slurm_spank_local_user_init", [&] { return announce_step(sp); });
}

BANYAN_EXPORT int slurm_spank_task_init(spank_t sp, int, char**) {
    return hook("slurm_spank_task_init", [&] { return set_task_environment(sp); });
}

BANYAN_EXPORT int slurm_spank_task_exit(spank_t sp, int, char**) {
    return hook("slurm_spank_task_exit", [&] { return note_task_end(sp); });
}

BANYAN_EXPORT int slurm_spank_exit(spank_t, int, char**) {
    return hook("slurm_spank_exit", [&] { return in(S_CTX_REMOTE) ? note_step_end() : SLURM_SUCCESS; });
}

BANYAN_EXPORT int slurm_spank_job_prolog(spank_t sp, int ac, char** av) {
    return hook("slurm_spank_job_prolog", [&] { return open_session(sp, parse_settings(ac, av)); });
}

BANYAN_EXPORT int slurm_spank_job_epilog(spank_t sp, int ac, char** av) {
    return hook("slurm_spank_job_epilog", [&] { return detach_session(sp, parse_settings(ac, av)); });
}

}  // extern "C"
