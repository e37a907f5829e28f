// SPDX-License-Identifier: BSD-3-Clause
//
// Life: the start, the other daemons' connections, the clock, the end. local_server.cpp has the Unix socket.
#include <exception>
#include <random>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/daemon/daemon.hpp"
#include "common/ready.hpp"

namespace banyan::ckpt {
namespace {

// For users, each with threads of his own: some are stuck in storage while others work.
constexpr std::uint32_t max_user_threads = 256;
constexpr std::uint32_t owner_threads = 4;
constexpr std::size_t max_waiting_storage = 64;
constexpr std::size_t max_waiting_compute = 4096;
constexpr milliseconds tick_every{250};  // also how often what the daemons say to each other is repeated
constexpr milliseconds first_session_timeout{60'000};  // whoever started this daemon may have died
constexpr milliseconds transfer_timeout{6'000};        // above what a sender gives one chunk (link.cpp)
constexpr milliseconds finish_timeout{3000};           // at the end, for copies and flushes under way

}  // namespace

daemon::daemon(asio::io_context& io, settings s, std::shared_ptr<keeper::custody> keeper)
    : io_(io),
      settings_(std::move(s)),
      keeper_(std::move(keeper)),
      first_session_by_(clock::now() + first_session_timeout),
      budget_(std::make_shared<memory_budget>(settings_.memory_limit, keeper_)),
      workers_(settings_.threads),
      munge_(1),
      storage_("storage", {settings_.storage_threads, max_user_threads, max_waiting_storage}),
      compute_("memory", {settings_.threads, max_user_threads, max_waiting_compute}),
      owners_("a checkpoint directory", {owner_threads, max_user_threads, max_waiting_storage}),
      local_limits_(local_connections()),
      local_acceptor_(io),
      peers_(io.get_executor(),
             peer::settings::of(peer_role, settings_.node, settings_.munge_socket, settings_.encrypt, munge_,
                                workers_),
             {}, [this](auto connection) { return serve_peer(std::move(connection)); }),
      signals_(io, SIGTERM, SIGINT),
      nonce_((static_cast<std::uint64_t>(std::random_device{}()) << 32) | std::random_device{}()) {}

daemon::~daemon() = default;

void daemon::spawn(task<void> work) {
    asio::co_spawn(io_, std::move(work), [](std::exception_ptr e) {
        try {
            if (e) std::rethrow_exception(e);
        } catch (const std::exception& what) {
            spdlog::error("a task ended with an exception: {}", what.what());
        }
    });
}

result<void> daemon::open() {
    BANYAN_CHECK(lock_socket());
    take_over();
    BANYAN_CHECK(peers_.open(settings_.bind, settings_.port));
    BANYAN_CHECK(open_local());
    if (!settings_.metrics.empty()) metrics_ = metrics::serve(settings_.metrics);
    spawn(accept_local());
    spawn(tick());
    spawn(stop_on_signal());
    spdlog::info("node {}: {} and {}:{}, {} bytes of memory at most", settings_.node, settings_.socket,
                 settings_.bind, settings_.port, settings_.memory_limit);
    tell_ready();
    return {};
}

// A transfer keeps its rank's place and memory: a peer that stops in the middle of one, alive as its TCP may
// be, loses them. Between two messages the transfer alone ends: the sender may have been overtaken by a newer
// step, and needs the connection for the next.
void daemon::watch_transfer(const std::shared_ptr<peer_state>& state) {
    state->silence.cancel();
    if (!state->incoming) return;
    state->silence.expires_after(transfer_timeout);
    state->silence.async_wait([this, weak = std::weak_ptr(state)](const boost::system::error_code& ec) {
        const auto s = weak.lock();
        if (ec || !s || clock::now() < s->silence.expiry()) return;
        s->handling ? s->connection->close() : end_incoming(s.get());
    });
}

task<void> daemon::serve_peer(std::shared_ptr<peer::channel> connection) {
    const auto state = std::make_shared<peer_state>(io_);
    state->connection = std::move(connection);
    result<void> whole;
    while (whole && !stopping_) {
        watch_transfer(state);
        auto head = co_await state->connection->read_head();
        if (!head) break;
        state->handling = true;
        whole = co_await handle_peer(state.get(), head->first, std::move(head->second));
        state->handling = false;
    }
    state->silence.cancel();
    end_incoming(state.get());
}

std::shared_ptr<link> daemon::link_to(const session_node& node, bool bulk) {
    auto& known = links_[{node.name, node.addr, bulk}];
    if (!known)
        known = std::make_shared<link>(
            io_.get_executor(), link_options{node.name, node.addr, settings_.port, &peers_.handshake()});
    return known;
}

session_ptr daemon::find_session(std::uint64_t job) const {
    const auto it = sessions_.find(job);
    return it == sessions_.end() ? nullptr : it->second;
}

void daemon::notify(const session_ptr& s) { s->changed->notify(); }

// Leases, votes whose answer was lost, and steps that do not become complete.
task<void> daemon::tick() {
    asio::steady_timer timer(io_);
    while (!stopping_) {
        timer.expires_after(tick_every);
        co_await timer.async_wait(as_result);
        keeper_->catch_up();
        if (metrics_) metrics_->tell(numbers_of(sessions_, *budget_));
        const auto before = sessions_;
        for (const auto& [job, s] : before) {
            if (s->detached && clock::now() >= s->lease_end) {
                spdlog::info("job {}: lease ended, memory is freed", job);
                free_session(s);
            } else {
                watch_former_owners(s);
                s->tell_untold();
                watch_agreement(s);
                watch_votes(s);
            }
        }
        const bool needed = !sessions_.empty() || claims_ != 0 || !refused_.empty() ||
                            (!had_session_ && clock::now() < first_session_by_);
        if (settings_.exit_when_idle && !needed && !stopping_) {
            spdlog::info("no session is left");
            leave();  // in this very turn of the loop: a session that opens after the look would be lost
        }
    }
}

task<void> daemon::stop_on_signal() {
    auto [ec, signal] = co_await signals_.async_wait(as_result);
    if (ec) co_return;
    spdlog::info("signal {}: finishing what is under way", signal);
    co_await stop();
}

task<void> daemon::stop() {
    const auto until = clock::now() + finish_timeout;
    const auto before = sessions_;
    for (const auto& [job, s] : before)
        while ((s->pending != 0 || s->flushing) && clock::now() < until)
            co_await s->changed->wait(std::min(until, clock::now() + milliseconds(100)));
    // A job that has just ended gives its directory up, so that the next one need not watch it.
    asio::steady_timer timer(io_);
    const auto of_open_sessions = [&] {
        return static_cast<std::uint32_t>(
            std::count_if(sessions_.begin(), sessions_.end(),
                          [](const auto& s) { return s.second->hold.held.has_value(); }));
    };
    while (claims_ > of_open_sessions() && clock::now() < until) {
        timer.expires_after(milliseconds(20));
        co_await timer.async_wait(as_result);
    }
    leave();
}

void daemon::leave() {
    stopping_ = true;
    // First the name, so that nobody comes any more: who is too late finds no socket and starts a successor.
    ::unlink(settings_.socket.c_str());
    boost::system::error_code ignored;
    local_acceptor_.close(ignored);
    peers_.close();
    spdlog::info("stopped");
    io_.stop();
}

}  // namespace banyan::ckpt
