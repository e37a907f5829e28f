// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/program_watch.hpp"

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/timer.hpp"
#include "fault/sources/process_job.hpp"
#include "fault/sources/program_logs.hpp"

namespace banyan::fault {

program_watch::program_watch(asio::io_context& io, const config& settings, sink to)
    : io_(io), config_(settings), sink_(std::move(to)) {}

void program_watch::start() {
    for (const auto& what : config_.log_sources()) {
        spdlog::info("reads {} as {}", what.path, name_of(what.format));
        asio::co_spawn(io_, follow(what), asio::detached);
    }
}

task<void> program_watch::follow(log_source what) {
    file_follower* self = nullptr;
    file_follower log(what.path, file_follower::start::end, [this, &what, &self](const log_line& line) {
        // Streams of several files must not be taken for one.
        const auto stream = fmt::format("{}:{}", name_of(what.format), line.stream);
        log_line own = line;
        own.stream = stream;
        if (what.format == program_log::fabric_manager)
            fabric_manager(own);
        else
            nccl(own, self->owner());
    });
    self = &log;
    for (;;) {
        const auto ended = co_await log.run();
        std::uint64_t held = 0;
        if (!ended && quiet_.pass(what.path, clock::now(), held))
            spdlog::error("cannot read {}: {}", what.path, ended.error().text());
        timer again(io_, std::chrono::seconds(1));
        co_await again.async_wait(as_result);
    }
}

void program_watch::fabric_manager(const log_line& line) {
    if (auto found = fabric_manager_line(line.raw)) sink_(std::move(found->fault), line, 0);
}

bool program_watch::may_pass(std::int64_t now_ms) {
    if (now_ms - minute_ms_ >= 60'000 || now_ms < minute_ms_) {
        minute_ms_ = now_ms;
        passed_ = 0;
    }
    if (passed_ < most_a_minute) return ++passed_ > 0;
    std::uint64_t held = 0;
    if (quiet_.pass("nccl", clock::now(), held))
        spdlog::warn("more than {} warnings of NCCL a minute: the rest is not counted", most_a_minute);
    return false;
}

void program_watch::nccl(const log_line& line, uid_t owner) {
    const auto found = nccl_line(line.raw);
    // Several hosts may write to one file: each takes its own lines.
    if (!found || found->host.substr(0, found->host.find('.')) != config_.node) return;
    if (!may_pass(clock::wall_ms())) return;
    // The number of a process is believed where its owner wrote it: nobody accuses another's job.
    const auto whose = job_of_process(config_.root, found->pid);
    const auto job = whose && whose->uid == owner ? whose->job : 0;
    kernel_fault fault;
    fault.kind = fault_kind::symptom;
    fault.code = static_cast<std::uint32_t>(found->what);
    fault.device = found->hca.empty() ? "NCCL" : found->hca;
    sink_(std::move(fault), line, job);
}

}  // namespace banyan::fault
