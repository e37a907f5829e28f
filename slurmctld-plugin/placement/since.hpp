// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <unordered_map>

namespace banyan::slurm {

/// For how long something holds for a job. In memory alone: a restart of slurmctld begins the count again.
class since_when {
  public:
    /// Since the first call for this run of the job, which is a job_record_t.
    template <class Job>
    std::time_t seconds(const Job& job, std::time_t now = std::time(nullptr)) {
        if (known_.size() >= room_ && !known_.contains(job.job_id)) make_room(now);
        // A job that is only tested has the number of the next that is submitted.
        const auto submitted = job.details ? job.details->submit_time : 0;
        auto& e = known_[job.job_id];
        if (e.since == 0 || e.restart != job.restart_cnt || e.submitted != submitted)
            e = {job.restart_cnt, submitted, now, now};
        e.asked = now;
        return now - e.since;
    }
    std::size_t size() const { return known_.size(); }

  private:
    struct entry {
        std::uint32_t restart = 0;
        std::time_t submitted = 0, since = 0, asked = 0;
    };
    // Of jobs that wait, each is asked for with every cycle of the scheduler.
    void make_room(std::time_t now) {
        std::erase_if(known_, [&](const auto& one) { return now - one.second.asked > quiet; });
        room_ = std::max<std::size_t>(least, 2 * known_.size());
    }
    static constexpr std::size_t least = 1024;
    static constexpr std::time_t quiet = 3600;
    std::unordered_map<std::uint32_t, entry> known_;
    std::size_t room_ = least;
};

}  // namespace banyan::slurm
