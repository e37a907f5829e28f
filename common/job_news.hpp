// SPDX-License-Identifier: BSD-3-Clause
//
// What root's programs on a node tell the fault daemon's agent there of a job: slurmstepd how a task of its
// training ended, the checkpoint daemon which copies are damaged, and that banyan-run has given a job up. One
// datagram each on the agent's socket, which root alone may send; nobody waits for an answer, and where no
// agent runs nothing comes of it. All of it accuses the job, and its node by repetition alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace banyan {

struct job_news {
    enum class kind : std::uint8_t {
        task_ended,      ///< `status` is what wait() gave
        given_up,        ///< banyan-run does not start the step again; `text` is its user's
        copy_damaged,    ///< a copy in this node's memory no longer is what was summed up
        sent_damaged,    ///< a copy left this node, and was not what was summed up where it arrived
        stored_damaged,  ///< a file in storage
    };
    static constexpr std::size_t max_text = 400;

    kind what = kind::task_ended;
    std::uint32_t job = 0, step = 0;
    std::uint32_t rank = 0;
    int status = 0;
    std::uint64_t more = 0;  ///< of the same, not told by themselves
    std::string text;
    bool operator==(const job_news&) const = default;
};

/// Sends it, or says at once why that cannot be: not_found where no agent listens, unavailable where it has
/// no room.
result<void> tell_agent(const std::string& socket, const job_news& news);
/// One datagram, checked.
result<job_news> job_news_from(std::string_view datagram);
inline constexpr std::size_t longest_job_news = 4096;

/// A task ended by a fault of its own. Not one that ended well, and not one that was ended: srun and scancel
/// end the rest of a step by SIGKILL and SIGTERM, which a shell tells as 128 + their number, and the kernel
/// tells itself whom it killed for memory.
bool failed_by_itself(int wait_status);
/// A signal that bad memory or a bad processor may cause as well as the program.
bool may_be_hardware(int wait_status);
/// "exit code 1", "signal 11 (SIGSEGV)".
std::string end_in_words(int wait_status);

}  // namespace banyan
