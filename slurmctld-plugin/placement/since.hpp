// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <ctime>

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// For how long something holds for a job. In memory alone and by job number: a restart of slurmctld, or a
/// clash of two jobs, begins the count again.
class since_when {
  public:
    /// Since the first call for this run of the job.
    std::time_t seconds(const job_record_t& job) {
        auto& e = known_[job.job_id % known_.size()];
        // A job that is only tested has the number of the next that is submitted.
        const auto submitted = job.details ? job.details->submit_time : 0;
        if (e.job_id != job.job_id || e.restart != job.restart_cnt || e.submitted != submitted)
            e = {job.job_id, job.restart_cnt, submitted, std::time(nullptr)};
        return std::time(nullptr) - e.since;
    }

  private:
    struct entry {
        std::uint32_t job_id = 0, restart = 0;
        std::time_t submitted = 0, since = 0;
    };
    std::array<entry, 1024> known_{};
};

}  // namespace banyan::slurm
