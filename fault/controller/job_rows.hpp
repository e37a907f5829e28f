// SPDX-License-Identifier: BSD-3-Clause
//
// How much of the history what is told of jobs may take: users bring it about as often as they like. A few
// lines a minute of each job, and some in all; the incident counts the others. Pure.
#pragma once

#include <cstdint>
#include <map>

namespace banyan::fault {

class job_rows {
  public:
    static constexpr std::uint32_t most_of_a_job = 8, most_in_all = 240;

    bool may_have_one(std::uint32_t job, std::int64_t now_ms) {
        constexpr std::int64_t minute = 60'000;
        if (now_ms - since_ms_ >= minute || now_ms < since_ms_) {
            since_ms_ = now_ms;
            of_jobs_.clear();
            in_all_ = 0;
        }
        if (in_all_ >= most_in_all || of_jobs_[job] >= most_of_a_job) return false;
        ++of_jobs_[job];
        ++in_all_;
        return true;
    }

  private:
    std::int64_t since_ms_ = 0;
    std::uint32_t in_all_ = 0;
    std::map<std::uint32_t, std::uint32_t> of_jobs_;
};

}  // namespace banyan::fault
