// SPDX-License-Identifier: BSD-3-Clause
#include "spank/task_ends.hpp"

#include <utility>

namespace banyan::spank {

void task_ends::ended(const job_news& task, const teller& tell) {
    if (!failed_by_itself(task.status)) return;
    if (told_ < told_at_once) {
        ++told_;
        if (tell(task)) return;
    }
    // A signal that hardware may cause says more than an exit code that follows from it.
    if (untold_++ == 0 || (may_be_hardware(task.status) && !may_be_hardware(newest_.status))) newest_ = task;
}

void task_ends::over(const teller& tell) {
    const auto untold = std::exchange(untold_, 0);
    if (untold == 0) return;
    newest_.more = untold - 1;
    tell(newest_);
}

task_ends::teller to_agent(std::string socket) {
    return [socket = std::move(socket)](const job_news& news) {
        if (socket.empty()) return true;
        const auto told = tell_agent(socket, news);
        // Where no agent runs nobody wants to hear of it, now or later.
        return told || told.error().code != errc::unavailable;
    };
}

}  // namespace banyan::spank
