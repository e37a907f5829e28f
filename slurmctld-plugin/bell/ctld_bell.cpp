// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/bell/ctld_bell.hpp"

#include "common/guard.hpp"
#include "slurmctld-plugin/bell/bell.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/placement/kept_nodes.hpp"
#include "slurmctld-plugin/select/batch_host.hpp"
#include "slurmctld-plugin/select/early_start.hpp"

namespace banyan::slurm {
namespace {

/// Those with which slurmctld itself ends a job.
slurmctld_lock_t locks() {
    slurmctld_lock_t out{};
    out.conf = READ_LOCK;
    out.job = WRITE_LOCK;
    out.node = WRITE_LOCK;
    out.part = READ_LOCK;
    out.fed = READ_LOCK;
    return out;
}

bool look_at_what_is_due() {
    const auto* ctld = ctld_tables::get();
    if (!ctld) return false;
    if (!ctld->in_control()) return true;
    end_lost_jobs();
    const bool unclean = start_what_is_clean(), kept = look_at_kept_nodes();
    return unclean || kept;
}

/// Never destroyed: the thread may outlive slurmctld's main.
bell& the_bell() {
    static auto& one =
        *new bell({[] { lock_slurmctld(locks()); }, [] { unlock_slurmctld(locks()); }, look_at_what_is_due});
    return one;
}

}  // namespace

void ring() noexcept {
    guarded(
        "ring", [] { return 0; },
        [] {
            if (ctld_tables::get()) the_bell().ring();
            return 0;
        });
}

void still_bell() noexcept {
    guarded(
        "still_bell", [] { return 0; },
        [] {
            the_bell().still();
            return 0;
        });
}

}  // namespace banyan::slurm
