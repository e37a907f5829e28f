// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/daemon.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/protocol/left_ends.hpp"
#include "common/json_fields.hpp"
#include "common/ready.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds tick_every{250};  // also how often what the daemons say to each other is repeated
constexpr milliseconds first_session_timeout{60'000};  // whoever started this daemon may have died
constexpr milliseconds finish_timeout{3000};           // at the end, for copies and flushes under way

constexpr std::size_t most_in_answer = 64 * 1024;  // to status, beyond one session

std::size_t size_of(const json& one) {
    return one.dump(-1, ' ', false, json::error_handler_t::replace).size();
}

bool may_be_root_only(message type) {
    return type == message::session_open || type == message::step_open || type == message::session_detach ||
           type == message::seal_now;
}

}  // namespace

daemon::daemon(asio::io_context& io, settings s, std::shared_ptr<keeper::custody> keeper)
    : core_(io, std::move(s), std::move(keeper)),
      first_session_by_(clock::now() + first_session_timeout),
      peers_(core_, [this](auto connection) { return peer_requests_.serve(std::move(connection)); }),
      users_(core_, peers_),
      directories_(core_),
      flushes_(core_, peers_, users_, directories_),
      copies_(core_, peers_, users_),
      restores_(core_, peers_, users_),
      reads_(peers_),
      former_(core_, peers_, users_),
      launches_(core_, {peers_, users_, directories_, former_, copies_, flushes_, restores_}),
      departures_(core_, peers_, former_, launches_),
      ended_(core_, flushes_),
      emergencies_(core_, copies_, flushes_),
      memory_(core_, users_, ended_),
      jobs_(core_, {users_, directories_, launches_, memory_, ended_}),
      ranks_(core_, {users_, copies_, launches_, memory_, ended_, emergencies_, jobs_, flushes_}),
      peer_requests_(core_, {users_, launches_, departures_, flushes_, memory_}),
      hangs_(core_, peers_),
      handover_(core_, {users_, directories_, copies_, launches_, ended_, emergencies_}),
      local_(core_, {[this](auto client, auto type, auto meta) {
                         return handle_local(std::move(client), type, std::move(meta));
                     },
                     [this](const auto& client) { ranks_.on_disconnect(client); }}),
      signals_(io, SIGTERM, SIGINT) {}

daemon::~daemon() = default;

result<void> daemon::open() {
    auto kept = core_.keeper->take();
    BANYAN_CHECK(local_.lock(kept));
    handover_.take_over(std::move(kept));
    BANYAN_CHECK(peers_.open());
    BANYAN_CHECK(local_.open());
    if (!core_.config.metrics.empty()) metrics_ = metrics::serve(core_.config.metrics);
    core_.spawn(detach_ended());
    core_.spawn(tick());
    core_.spawn(stop_on_signal());
    spdlog::info("node {}: {} and {}:{}, {} bytes of memory at most", core_.config.node, core_.config.socket,
                 core_.config.bind, core_.config.port, core_.config.memory_limit);
    tell_ready();
    return {};
}

// Once it listens: whoever finds nobody after this tells it.
task<void> daemon::detach_ended() {
    for (const auto job : take_ends(core_.config.socket)) {
        spdlog::info("job {}: ended while no daemon was here", job);
        json which{{"job", job}};
        (void)co_await jobs_.on_detach(std::move(which));
    }
}

// Leases, votes whose answer was lost, and steps that do not become complete.
task<void> daemon::tick() {
    timer pause(core_.io);
    while (!core_.stopping) {
        pause.expires_after(tick_every);
        co_await pause.async_wait(as_result);
        core_.keeper->catch_up();
        if (metrics_) metrics_->tell(numbers_of(core_.sessions, *core_.budget));
        for (const auto& s : core_.all_sessions()) {
            if (s->closed) continue;
            if (s->state.empty() && s->detached && clock::now() >= s->lease_end) {
                spdlog::info("job {}: lease ended, memory is freed", s->job());
                core_.end_lease(s);
            } else {
                handover_.watch_former_owners(s);
                s->tell_untold();
                launches_.watch(s);
                if (s->state.empty()) {
                    departures_.watch(s);
                    hangs_.watch(s);
                }
                s->beat();
                users_.watch_votes(s);
            }
        }
        const bool needed = !core_.sessions.empty() || directories_.claims() != 0 || jobs_.any_refused() ||
                            (!core_.had_session && clock::now() < first_session_by_);
        if (core_.config.exit_when_idle && !needed && !core_.stopping) {
            spdlog::info("no session is left");
            leave();  // in this very turn of the loop: a session that opens after the look would be lost
        }
    }
}

task<answer_meta> daemon::handle_local(client_ptr client, std::uint16_t type, json meta) {
    const auto what = static_cast<message>(type);
    // A daemon that does not run as root serves its own user alone.
    const bool root = client->uid == 0 || client->uid == ::geteuid();
    if (may_be_root_only(what) && !root)
        co_return fail(errc::denied, fmt::format("uid {} may not send this message", client->uid),
                       "only root may");
    switch (what) {
        case message::session_open:
            co_return co_await jobs_.on_open(std::move(meta));
        case message::step_open:
            co_return co_await jobs_.on_step_open(std::move(meta));
        case message::session_detach:
            co_return co_await jobs_.on_detach(std::move(meta));
        case message::session_close:
            co_return co_await jobs_.on_close(client, std::move(meta));
        case message::attach:
            co_return co_await ranks_.on_attach(client, std::move(meta), false);
        case message::attach_state:
            co_return co_await ranks_.on_attach(client, std::move(meta), true);
        case message::attach_part:
            co_return ranks_.on_attach_part(client, meta);
        case message::sealed:
            ranks_.on_sealed(client, meta);
            co_return json::object();
        case message::skipped:
            ranks_.on_skipped(client, meta);
            co_return json::object();
        case message::restore:
            co_return co_await restores_.on_restore(client, std::move(meta));
        case message::look:
            co_return co_await reads_.on_look(client, std::move(meta));
        case message::read:
            co_return co_await reads_.on_read(client, std::move(meta));
        case message::milestone:
            co_return co_await ranks_.on_milestone(client, std::move(meta));
        case message::finalize:
            co_return co_await ranks_.on_finalize(client, std::move(meta));
        case message::seal_now:
            co_return co_await emergencies_.seal_now(std::move(meta));
        case message::status:
            co_return on_status(client->uid, root, meta);
        case message::given_up:
            co_return users_.on_given_up(client->uid, root, meta);
        default:
            co_return fail(errc::invalid_input, fmt::format("unknown message type {}", type));
    }
}

// A user hears of his own jobs; the node's figures are root's, since they tell of other users' jobs.
// One answer holds the newest of his jobs; where there are more it says before which, and he asks on. Root
// that asks for no page hears of all.
json daemon::on_status(uid_t uid, bool root, const json& asked) const {
    const auto before = json_fields(asked).number("before");
    const auto most = root && !before ? SIZE_MAX : most_in_answer;
    const bool first = before.value_or(UINT64_MAX) == UINT64_MAX;
    json sessions = json::array(), out;
    std::uint64_t used = 0;
    std::size_t bytes = 0;
    const auto end = core_.sessions.lower_bound(before.value_or(UINT64_MAX));
    for (auto it = std::make_reverse_iterator(end); it != core_.sessions.rend(); ++it) {
        const auto& s = *it->second;
        if (!root && s.request.uid != uid) continue;
        if (first) used += core_.memory_of_job(s);
        if (bytes >= most) {
            out["more"] = sessions.back()["job"];
            if (!first) break;
            continue;
        }
        sessions.push_back(describe(s));
        if (most != SIZE_MAX) bytes += size_of(sessions.back());
    }
    std::reverse(sessions.begin(), sessions.end());
    out["node"] = core_.config.node;
    out["pid"] = ::getpid();
    out["memory_limit"] = root ? core_.budget->limit() : core_.config.job_limit();
    if (first) out["memory_used"] = root ? core_.budget->used() : used;
    if (root)
        for (std::size_t i = 0; i < page_kind_names.size(); ++i)
            out["memory_pages"][std::string(page_kind_names[i])] =
                core_.budget->pages.bytes(static_cast<page_kind>(i));
    out["sessions"] = std::move(sessions);
    return out;
}

task<void> daemon::stop_on_signal() {
    auto [ec, signal] = co_await signals_.async_wait(as_result);
    if (ec) co_return;
    spdlog::info("signal {}: finishing what is under way", signal);
    co_await stop();
}

task<void> daemon::stop() {
    const auto until = clock::now() + finish_timeout;
    for (const auto& s : core_.all_sessions())
        while ((s->pending != 0 || s->flush.writing()) && clock::now() < until)
            co_await s->changed->wait(std::min(until, clock::now() + milliseconds(100)));
    // A job that has just ended gives its directory up, so that the next one need not watch it.
    timer pause(core_.io);
    const auto of_open_sessions = [&] {
        const auto all = core_.all_sessions();
        return static_cast<std::uint32_t>(
            std::count_if(all.begin(), all.end(), [](const auto& s) { return s->hold.held.has_value(); }));
    };
    while (directories_.claims() > of_open_sessions() && clock::now() < until) {
        pause.expires_after(milliseconds(20));
        co_await pause.async_wait(as_result);
    }
    leave();
}

void daemon::leave() {
    core_.stopping = true;
    // First the name, so that nobody comes any more: who is too late finds no socket and starts a successor.
    local_.close();
    peers_.close();
    spdlog::info("stopped");
    core_.io.stop();
}

}  // namespace banyan::ckpt
