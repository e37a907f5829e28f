// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/admin.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ranges>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/json_fields.hpp"
#include "common/local_socket.hpp"
#include "fault/net/protocol.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {

constexpr std::size_t most_listed = 500, most_listed_bytes = 3u << 20, most_request = 4096;
// A request takes no longer to come than this, and its answer no longer to be read.
constexpr std::chrono::seconds writing(5), reading(10);

// As enum ruling has them.
constexpr std::array<std::string_view, 3> rulings{"approve", "retry", "cancel"};

uid_t uid_of(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : static_cast<uid_t>(-1);
}

// True when somebody listens on the socket at `path`.
bool is_alive(const std::string& path) {
    return wire::connect_unix(path, clock::now() + std::chrono::milliseconds(500)).has_value();
}

}  // namespace

admin_server::admin_server(asio::io_context& io, controller& what)
    : io_(io), controller_(what), acceptor_(io), callers_(::getuid()) {}

admin_server::~admin_server() {
    std::error_code ignored;
    if (acceptor_.is_open()) std::filesystem::remove(path_, ignored);
}

result<void> admin_server::listen(const std::string& path) {
    std::error_code ec;
    const std::filesystem::path place(path);
    if (!place.parent_path().empty()) std::filesystem::create_directories(place.parent_path(), ec);
    if (std::filesystem::is_socket(place, ec)) {
        if (is_alive(path))
            return fail(errc::conflict, fmt::format("a controller listens on {} already", path));
        std::filesystem::remove(place, ec);  // left behind by one that was killed
    }
    boost::system::error_code failed;
    const asio::local::stream_protocol::endpoint endpoint(path);
    acceptor_.open(endpoint.protocol(), failed);
    if (!failed) acceptor_.bind(endpoint, failed);
    if (!failed) refuse_descriptors(acceptor_.native_handle());
    if (!failed) acceptor_.listen(256, failed);
    if (failed)
        return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", path, failed.message()),
                    "see [fault] socket");
    path_ = path;
    ::chmod(path.c_str(), 0666);
    asio::co_spawn(io_, accept(), asio::detached);
    return {};
}

task<void> admin_server::accept() {
    timer pause(io_);
    for (;;) {
        auto [ec, peer] = co_await acceptor_.async_accept(as_result);
        if (!acceptor_.is_open()) co_return;
        if (!ec) try {
                asio::co_spawn(io_, serve(std::make_shared<socket>(std::move(peer))), asio::detached);
                continue;
            } catch (const std::bad_alloc&) {
                ec = asio::error::no_memory;
            }
        // Out of descriptors, most likely: the caller stays in the queue, so asking again at once would spin.
        std::uint64_t held = 0;
        if (quiet_.pass("accept", clock::now(), held))
            spdlog::error("cannot take a connection on {}: {} ({} more held back)", path_, ec.message(),
                          held);
        pause.expires_after(std::chrono::milliseconds(100));
        co_await pause.async_wait(as_result);
    }
}

// Ends a caller that does not send, or does not read.
class admin_server::guard {
  public:
    guard(asio::io_context& io, std::shared_ptr<socket> peer)
        : timer_(std::make_shared<timer>(io)), peer_(std::move(peer)) {}
    ~guard() { timer_->cancel(); }
    guard(const guard&) = delete;
    void within(std::chrono::seconds time) {
        timer_->expires_after(time);
        timer_->async_wait([peer = peer_](const boost::system::error_code& ec) {
            boost::system::error_code ignored;
            if (!ec) peer->close(ignored);
        });
    }
    void rest() { timer_->cancel(); }

  private:
    std::shared_ptr<timer> timer_;
    std::shared_ptr<socket> peer_;
};

task<void> admin_server::serve(std::shared_ptr<socket> peer) {
    const auto uid = uid_of(peer->native_handle());
    if (!let_in(uid)) {
        co_await turn_away(peer, uid);
        co_return;
    }
    try {
        co_await converse(peer, uid);
    } catch (const std::exception& e) {
        spdlog::error("a request of uid {} ended with an exception: {}", uid, e.what());
    }
    callers_.leave(uid);
}

bool admin_server::let_in(uid_t uid) {
    if (callers_.enter(uid)) return true;
    if (!callers_.comes_first(uid) || idle_.empty()) return false;
    boost::system::error_code ignored;
    idle_.begin()->second->close(ignored);
    idle_.erase(idle_.begin());
    return callers_.enter(uid, true);
}

task<void> admin_server::turn_away(std::shared_ptr<socket> peer, uid_t uid) {
    std::uint64_t held = 0;
    if (quiet_.pass("full", clock::now(), held))
        spdlog::warn("uid {} has too many connections to {}: refused ({} more held back)", uid, path_, held);
    guard dog(io_, peer);
    dog.within(writing);
    json refusal = wire::error_meta({errc::exhausted, "too many connections to the controller at once",
                                     "end some of your banyan-fault commands"});
    (void)co_await wire::write_frame(*peer, code(message::answer), std::move(refusal));
}

// Until it has asked something it is idle.
task<result<wire::frame>> admin_server::hear(std::shared_ptr<socket> peer, uid_t uid) {
    const struct place {
        std::map<std::uint64_t, std::shared_ptr<socket>>& all;
        std::uint64_t number;
        ~place() { all.erase(number); }
    } mine{idle_, next_idle_++};
    if (!callers_.is_privileged(uid)) idle_.emplace(mine.number, peer);
    co_return co_await wire::read_frame(*peer, most_request, 0);
}

task<void> admin_server::converse(std::shared_ptr<socket> peer, uid_t uid) {
    guard dog(io_, peer);
    for (;;) {
        dog.within(writing);
        auto asked = co_await hear(peer, uid);
        if (!asked || asked->type != code(message::admin)) co_return;
        dog.rest();
        auto meta = co_await respond(std::move(asked->meta), uid);
        dog.within(reading);
        const auto sent = co_await wire::write_frame(*peer, code(message::answer), std::move(meta));
        if (!sent) co_return;
    }
}

task<void> admin_server::wait_turn(uid_t uid) {
    const auto now = clock::now();
    if (const auto turn = callers_.turn(uid, now); turn > now) {
        timer wait(io_, turn);
        co_await wait.async_wait(as_result);
    }
}

task<json> admin_server::respond(json meta, uid_t uid) {
    co_await wait_turn(uid);
    auto out = co_await answer(std::move(meta), uid);
    if (!out) co_return wire::error_meta(out.error());
    co_return std::move(*out);
}

// The newest, as many as fit into one frame. What the kernel and the subnet manager printed is for root: it
// names processes and ports of others.
json admin_server::list(uid_t uid, const incident_sieve& wanted) {
    const bool with_lines = callers_.is_privileged(uid);
    const auto began = clock::now();
    const auto& all = controller_.incidents().all();
    std::vector<const incident*> chosen;
    std::size_t bytes = 0;
    auto it = all.rbegin();
    for (; it != all.rend() && chosen.size() < most_listed; ++it) {
        const auto& i = it->second;
        if (!wanted.passes(i)) continue;
        bytes += 2048;
        for (const auto& a : i.actions) bytes += 128 + a.target.size() + a.result.size();
        for (const auto& e : i.evidence) bytes += with_lines ? 128 + e.text.size() : 0;
        if (bytes > most_listed_bytes) break;
        chosen.push_back(&i);
    }
    json out = json::array();
    for (const auto* i : chosen | std::views::reverse) out.push_back(to_json(*i, with_lines));
    // Where the looking ended: nothing is said of what is older.
    const auto oldest = it != all.rend() ? (it == all.rbegin() ? it->first + 1 : std::prev(it)->first)
                        : all.empty()    ? 0
                                         : all.begin()->first;
    callers_.took(uid, 2 * (clock::now() - began));  // writing it out takes as long
    return {
        {"revision", controller_.incidents().revision()}, {"oldest", oldest}, {"incidents", std::move(out)}};
}

json admin_server::status() const {
    std::size_t open = 0, connected = 0;
    for (const auto& [number, i] : controller_.incidents().all()) open += i.closed_ms == 0;
    for (const auto& [node, info] : controller_.look().agents.agents()) connected += info.connected;
    const auto& c = controller_.look().settings;
    return {{"node", c.node},
            {"dry_run", c.dry_run},
            {"breaker_open", controller_.look().limits.tripped()},
            {"taken_last_hour", controller_.look().limits.taken_since(clock::wall_ms() - 3'600'000)},
            {"drains_per_hour", c.drains_per_hour},
            {"avoided_links", controller_.look().avoided.size()},
            {"agents", controller_.look().agents.agents().size()},
            {"agents_connected", connected},
            {"incidents_open", open},
            {"policy", controller_.look().rules.source()},
            {"policy_digest", controller_.look().rules.digest()},
            {"policy_rules", controller_.look().rules.rules().size()},
            {"opensm_log", c.opensm_log},
            {"history", c.history},
            {"pid", ::getpid()}};
}

json admin_server::agents(uid_t uid) {
    const auto began = clock::now();
    json out = json::array();
    for (const auto& [node, a] : controller_.look().agents.agents()) {
        json one = {
            {"node", node},       {"connected", a.connected}, {"address", a.address},   {"boot", a.boot_id},
            {"gpus", a.gpus},     {"since_ms", a.since_ms},   {"heard_ms", a.heard_ms}, {"events", a.events},
            {"queued", a.queued}, {"dropped", a.dropped},     {"lost", a.lost}};
        if (a.nvlink_domain) one["nvlink_domain"] = *a.nvlink_domain;
        out.push_back(std::move(one));
    }
    callers_.took(uid, 2 * (clock::now() - began));
    return {{"agents", std::move(out)}};
}

task<result<json>> admin_server::follow(std::uint64_t revision, uid_t uid, incident_sieve wanted) {
    // A long poll: the answer comes when something changed, or after a while.
    if (!callers_.begin_poll(uid))
        co_return fail(
            errc::exhausted,
            fmt::format("uid {} waits for changes {} times already", uid, caller_limits::polls_per_user),
            "end another banyan-fault incidents --follow");
    banyan::timer timer(io_);
    for (int turn = 0; turn < 200 && controller_.incidents().revision() == revision; ++turn) {
        timer.expires_after(std::chrono::milliseconds(50));
        co_await timer.async_wait(as_result);
    }
    callers_.end_poll(uid);
    co_await wait_turn(uid);  // a change answers all who wait at once
    co_return list(uid, wanted);
}

task<result<json>> admin_server::answer(json meta, uid_t uid) {
    const bool may_change = callers_.is_privileged(uid);
    BANYAN_CO_TRY(const auto cmd, json_fields(meta).text("cmd", 64));
    if (cmd == "incidents") {
        BANYAN_CO_TRY(auto wanted, incident_sieve::from(json_fields(meta)));
        if (!meta.contains("revision")) co_return list(uid, wanted);
        BANYAN_CO_TRY(const auto revision, json_fields(meta).number("revision"));
        co_return co_await follow(revision, uid, std::move(wanted));
    }
    if (cmd == "status") co_return status();
    if (cmd == "agents") co_return agents(uid);
    if (cmd == "explain") {
        BANYAN_CO_TRY(const auto number, json_fields(meta).number("number", INT64_MAX));
        BANYAN_CO_TRY(const auto found, co_await controller_.find(number));
        if (!found)
            co_return fail(errc::not_found, fmt::format("there is no incident f{:05d}", number),
                           "banyan-fault incidents");
        co_return may_change ? to_json(*found) : users_json(*found);
    }
    if (!may_change) co_return fail(errc::denied, fmt::format("\"{}\" is for root only", cmd));
    const auto who = fmt::format("uid {}", uid);
    json done = json::object();
    if (cmd == "close") {
        BANYAN_CO_TRY(const auto number, json_fields(meta).number("number", INT64_MAX));
        BANYAN_CO_CHECK(co_await controller_.close(number, who));
    } else if (cmd == "resume") {
        BANYAN_CO_TRY(auto node, json_fields(meta).text("node", 256));
        BANYAN_CO_TRY(const auto text, co_await controller_.resume(std::move(node), who));
        done["text"] = text;
    } else if (const auto at = std::ranges::find(rulings, cmd); at != rulings.end()) {
        BANYAN_CO_TRY(const auto number, json_fields(meta).number("number", INT64_MAX));
        const auto what = static_cast<ruling>(at - rulings.begin());
        BANYAN_CO_TRY(const auto text, co_await controller_.rule_on(number, what, who));
        done["text"] = text;
    } else if (cmd == "reset-breaker") {
        controller_.reset_breaker();
    } else {
        co_return fail(errc::invalid_input, fmt::format("the controller does not know \"{}\"", cmd));
    }
    co_return done;
}

}  // namespace banyan::fault
