// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/silence.hpp"

#include <algorithm>
#include <optional>

#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "common/timer.hpp"

namespace banyan::fault {

using asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

// An agent that its supervisor starts again is back by then.
constexpr milliseconds grace(500), between(500), later(2000), answers_within(700);
// A host that refuses is up: its daemons may all be starting again, as after an upgrade. One that says
// nothing twice is not.
constexpr milliseconds refused_for(2500), nothing_for(500);

}  // namespace

silence_watch::silence_watch(asio::io_context& io, asio::thread_pool& pool, cluster& slurm,
                             std::uint16_t ckptd_port, report to, milliseconds at_once)
    : io_(io),
      pool_(pool),
      slurm_(slurm),
      ckptd_port_(ckptd_port),
      report_(std::move(to)),
      at_once_(at_once) {}

void silence_watch::gone(const std::string& node, std::size_t agents) {
    agents_ = agents;
    there_.erase(node);
    gone_[node] = clock::now();
    if (followed_.insert(node).second) asio::co_spawn(io_, follow(node), asio::detached);
}

void silence_watch::back(const std::string& node) {
    gone_.erase(node);
    there_.insert(node);
}

void silence_watch::note(const std::string& node, const answers& heard) {
    if (heard.alive())
        there_.insert(node);
    else
        there_.erase(node);
}

/// So many at once are our own network, or the agents' upgrade. One that failed last week is not of them. In
/// a small cluster all of them are few. Where there is only one there never is another to tell.
bool silence_watch::too_many() const {
    if (agents_ > 1 && there_.empty()) return true;
    const auto since = clock::now() - at_once_;
    const auto together = std::ranges::count_if(gone_, [&](const auto& one) { return one.second > since; });
    return static_cast<std::size_t>(together) > std::max<std::size_t>(3, agents_ / 4);
}

task<void> silence_watch::follow(std::string node) {
    banyan::timer timer(io_, grace);
    co_await timer.async_wait(as_result);
    std::optional<clock::time_point> silent_since;
    bool said = false;
    while (gone_.contains(node)) {
        const auto where = co_await run_blocking(pool_, [this, &node] { return slurm_.node(node); });
        if (where && where->down) {  // it is out already
            there_.erase(node);
            break;
        }
        bool seen_to = where && where->planned;
        if (where && where->drained && !seen_to) {
            const auto jobs = co_await run_blocking(pool_, [this, &node] { return slurm_.jobs_on(node); });
            seen_to = jobs && jobs->empty();  // and nobody waits for it
        }
        if (seen_to) {
            there_.erase(node);
            gone_.erase(node);  // that it is gone was meant so, and says nothing of the others
            break;
        }
        answers heard;
        if (where) heard = co_await ask(*where);
        if (!gone_.contains(node)) break;
        note(node, heard);
        const auto now = clock::now();
        if (!heard.alive()) gone_[node] = now;
        if (!heard.looked() || heard.alive() || too_many())
            silent_since.reset();
        else if (!silent_since)
            silent_since = now;
        if (silent_since && now - *silent_since >= (heard.host_is_up() ? refused_for : nothing_for)) {
            report_(node,
                    fmt::format("its agent's connection ended; slurmd ({}:{}) {}, ckptd (port {}) {}",
                                where->address, where->port,
                                heard.slurmd == reply::refused ? "refuses" : "does not answer", ckptd_port_,
                                heard.ckptd == reply::refused ? "refuses" : "does not answer"));
            break;
        }
        if (std::uint64_t held = 0; !said && !silent_since && quiet_.pass(node, now, held)) {
            said = true;
            spdlog::warn("the agent of {} is gone: {}", node,
                         heard.alive()    ? "the node answers"
                         : heard.looked() ? "with too many others to judge any of them"
                                          : "whether the node answers is not known");
        }
        timer.expires_after(silent_since ? between : later);
        co_await timer.async_wait(as_result);
    }
    followed_.erase(node);
}

task<silence_watch::answers> silence_watch::ask(node_status where) {
    answers out;
    const auto address = co_await run_blocking(pool_, [&where]() -> std::optional<asio::ip::address> {
        asio::io_context own;
        tcp::resolver resolver(own);
        boost::system::error_code failed;
        const auto found = resolver.resolve(where.address, std::to_string(where.port), failed);
        return failed || found.empty() ? std::nullopt : std::optional(found.begin()->endpoint().address());
    });
    if (!address) co_return out;
    out.slurmd = co_await knock(*address, where.port);
    if (out.slurmd != reply::yes) out.ckptd = co_await knock(*address, ckptd_port_);
    co_return out;
}

task<silence_watch::reply> silence_watch::knock(asio::ip::address address, std::uint16_t port) {
    auto socket = std::make_shared<tcp::socket>(io_);
    timer limit(io_, answers_within);
    limit.async_wait([socket](const boost::system::error_code& ec) {
        boost::system::error_code ignored;
        if (!ec) socket->close(ignored);
    });
    const auto [failed] = co_await socket->async_connect(tcp::endpoint(address, port), as_result);
    limit.cancel();
    boost::system::error_code ignored;
    socket->close(ignored);
    if (!failed) co_return reply::yes;
    if (failed == asio::error::connection_refused) co_return reply::refused;
    const bool nobody = failed == asio::error::operation_aborted || failed == asio::error::timed_out ||
                        failed == asio::error::host_unreachable;
    co_return nobody ? reply::none : reply::unknown;  // such as no descriptor left, or no way out of here
}

}  // namespace banyan::fault
