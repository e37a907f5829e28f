// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/submit/expansion.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/release/layout.hpp"

namespace banyan::slurm {
namespace {

/// Read as slurmctld does (update_job_dependency), which takes any case, and whatever strtol takes. Each
/// once: a user may name one a hundred thousand times.
std::set<std::uint32_t> jobs_to_expand(const char* dependency) {
    constexpr char word[] = "expand:";
    std::set<std::uint32_t> out;
    const char* found = dependency ? ::strcasestr(dependency, word) : nullptr;
    for (; found; found = ::strcasestr(found, word)) {
        found += std::strlen(word);
        out.insert(static_cast<std::uint32_t>(std::strtol(found, nullptr, 10)));
    }
    return out;
}

}  // namespace

result<void> check_expansion(const char* dependency, bool trains) {
    const auto jobs = jobs_to_expand(dependency);
    if (trains && !jobs.empty())
        return fail(errc::invalid_input,
                    "a job with --train-parallel gives its nodes to no other (--dependency=expand)",
                    "omit one of the two options");
    for (const auto id : jobs) {
        const job_record_t* job = find_job_record(id);
        if (!job || !layout_fits(job)) continue;  // Slurm says what follows
        const auto request = request_of(*job);
        if (request && !*request) continue;
        return fail(
            errc::invalid_input,
            fmt::format("JobId={} trains (--train-parallel), and its plan has no place for nodes that "
                        "come later (--dependency=expand)",
                        id),
            fmt::format("a job that has lost nodes has all of them again after scontrol requeue {}", id));
    }
    return {};
}

}  // namespace banyan::slurm
