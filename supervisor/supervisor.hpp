// SPDX-License-Identifier: BSD-3-Clause
//
// The life of one banyan-run: read the job's plan, run a step, look at how it ended, and so on until there is
// nothing to start again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "supervisor/child.hpp"
#include "supervisor/decision.hpp"
#include "supervisor/departure.hpp"
#include "supervisor/full_size.hpp"
#include "supervisor/job_plan.hpp"
#include "supervisor/options.hpp"
#include "supervisor/output_file.hpp"
#include "supervisor/progress.hpp"
#include "supervisor/recovery.hpp"
#include "supervisor/slurm/job_query.hpp"

namespace banyan::supervisor {

class supervisor {
  public:
    supervisor(options opts, std::uint32_t job, job_state first, job_plan plan);

    /// The exit status for our caller.
    int run();

  private:
    result<step_end> run_step();
    bool look_at_allocation(pid_t srun);
    void end_step(pid_t srun);
    bool has_left(const std::optional<std::vector<std::string>>& allocation);
    std::chrono::milliseconds look_at_step(pid_t srun);
    void look_at_training(pid_t srun);
    void look_for_hang();
    void look_at_full_size();  // this in requeue.cpp
    failure look_at_output() const;
    situation look(const step_end& end);
    bool began() const;
    decision wait_for_slurmctld(situation& s, decision d);
    bool ask_again(const situation& s);
    void restart(const situation& s, const decision& d);
    decision requeue(situation& s, const decision& d);  // this and the next in requeue.cpp
    void wait_for_the_end();
    int finish(const situation& s, const decision& d) const;
    void announce(const situation& s);
    void tell_of_giving_up(const step_end& end, const std::string& why, const std::string& ends) const;
    std::string step_name() const;
    void say(const std::string& text) const;
    void detail(const std::string& text) const;

    options opts_;
    std::uint32_t job_;
    job_plan plan_;
    std::string socket_;
    signal_watch signals_;
    const bool began_whole_;              ///< the allocation was large enough for all groups at first
    std::vector<std::string> nodes_;      ///< of the allocation when the step began
    std::vector<std::string> unused_;     ///< nodes of the allocation that have had no rank so far
    std::optional<std::uint32_t> step_;   ///< id of the latest step, once known
    recovery recovery_;                   ///< whether the step trains, and what is complete
    bool overdue_ = false;                ///< we ended a step that should long have trained
    bool own_error_ = false;              ///< the latest srun ended on an error of its own
    bool left_ = false;                   ///< we ended a step that ran on a node that had left
    departure departure_;                 ///< whether it does
    full_size full_size_;                 ///< of a step with fewer groups than all
    std::optional<hang> hang_;            ///< of the latest step, as it was said
    output_file output_{STDERR_FILENO};   ///< of the steps
    failure failure_;                     ///< of the latest step, as its output tells it
    std::string kind_;                    ///< of the one before: see situation
    clock::time_point told_to_end_;       ///< the latest time, a step that we end
    std::chrono::milliseconds pause_{0};  ///< before srun is asked again
    std::uint32_t restarts_ = 0, idle_restarts_ = 0;
    job_state job_now_;    ///< the latest answer of slurmctld
    std::string refused_;  ///< why slurmctld would not requeue the job, once it said so
};

}  // namespace banyan::supervisor
