// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/manager_watch.hpp"

#include <boost/asio/detached.hpp>

#include "common/clock.hpp"
#include "common/command.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

using std::chrono::seconds;

namespace {
// One question costs the fabric two packets. Where it cannot be asked at all, that rarely changes.
constexpr seconds between_questions(5), while_silent(1), where_blind(60), between_looks(10);
constexpr std::size_t most_output = 4096;
}  // namespace

manager_watch::manager_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings,
                             looker look, report to)
    : io_(io),
      pool_(pool),
      config_(settings),
      look_(std::move(look)),
      report_(std::move(to)),
      memory_(settings.sm_probe_grace.count()),
      wake_(io) {}

void manager_watch::start() {
    if (!config_.sm_probe_command.empty()) asio::co_spawn(io_, run(), asio::detached);
}

void manager_watch::ask_soon() {
    hinted_ = true;
    wake_.cancel();
}

task<void> manager_watch::run() {
    for (;;) {
        hinted_ = false;
        co_await ask();
        if (memory_.is_silent()) co_await after_silence();
        if (hinted_) continue;
        wake_.expires_after(memory_.is_silent() ? while_silent : blind_ ? where_blind : between_questions);
        co_await wake_.async_wait(as_result);
    }
}

task<void> manager_watch::ask() {
    const auto look = co_await run_blocking(pool_, [this] {
        command_limits limits{config_.fabric_dump_timeout};
        limits.max_bytes = most_output;
        return read_sminfo(capture(config_.sm_probe_command, limits));
    });
    blind_ = look.answer == manager_look::said::unknown;
    std::uint64_t held = 0;
    if (blind_ && quiet_.pass("blind", clock::now(), held))
        spdlog::warn("whether the subnet manager answers is not known: {} says: {}",
                     config_.sm_probe_command.front(), look.words);
    if (const auto news = memory_.take(look, clock::wall_ms())) report_(*news);
}

// The question may have been lost on this host's own link: only who sees the fabric may say that nobody
// manages it.
task<void> manager_watch::after_silence() {
    const auto now = clock::now();
    const bool overdue = memory_.is_overdue(clock::wall_ms());
    if (!overdue && now - looked_at_ < between_looks) co_return;
    looked_at_ = now;
    const bool seen = co_await look_();
    if (!overdue) co_return;
    std::uint64_t held = 0;
    if (seen) {
        if (const auto news = memory_.tell_silence()) report_(*news);
    } else if (quiet_.pass("unseen", now, held)) {
        spdlog::warn("the subnet manager does not answer, and the fabric cannot be seen from here");
    }
}

}  // namespace banyan::fault
