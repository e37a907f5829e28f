// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/admin.hpp"

#include <filesystem>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/net/protocol.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {

constexpr std::size_t most_connections = 128, most_listed = 500;

uid_t uid_of(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : static_cast<uid_t>(-1);
}

// True when somebody listens on the socket at `path`.
bool is_alive(const std::string& path) {
    return wire::connect_unix(path, std::chrono::steady_clock::now() + std::chrono::milliseconds(500))
        .has_value();
}

}  // namespace

admin_server::admin_server(asio::io_context& io, controller& what)
    : io_(io), controller_(what), acceptor_(io) {}

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
    if (!failed) acceptor_.listen(64, failed);
    if (failed)
        return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", path, failed.message()),
                    "see [fault] socket");
    path_ = path;
    ::chmod(path.c_str(), 0666);
    asio::co_spawn(io_, accept(), asio::detached);
    return {};
}

task<void> admin_server::accept() {
    for (;;) {
        auto [ec, peer] = co_await acceptor_.async_accept(as_result);
        if (!acceptor_.is_open()) co_return;
        if (ec || connections_ >= most_connections) continue;
        asio::co_spawn(io_, serve(std::make_shared<socket>(std::move(peer))), asio::detached);
    }
}

task<void> admin_server::serve(std::shared_ptr<socket> peer) {
    ++connections_;
    const auto uid = uid_of(peer->native_handle());
    for (;;) {
        auto frame = co_await wire::read_frame(*peer, 16 * 1024, 0);
        if (!frame || frame->type != code(message::admin)) break;
        auto out = co_await answer(std::move(frame->meta), uid);
        json meta = out ? std::move(*out) : wire::error_meta(out.error());
        if (!co_await wire::write_frame(*peer, code(message::answer), std::move(meta))) break;
    }
    --connections_;
}

json admin_server::list(std::size_t most) const {
    json out = json::array();
    const auto& all = controller_.incidents().all();
    auto it = all.begin();
    if (all.size() > most) std::advance(it, static_cast<std::ptrdiff_t>(all.size() - most));
    for (; it != all.end(); ++it) out.push_back(to_json(it->second));
    return {{"revision", controller_.incidents().revision()}, {"incidents", std::move(out)}};
}

json admin_server::status() const {
    std::size_t open = 0, connected = 0;
    for (const auto& [number, i] : controller_.incidents().all()) open += i.closed_ms == 0;
    for (const auto& [node, info] : controller_.agents().agents()) connected += info.connected;
    const auto& c = controller_.settings();
    return {{"node", c.node},
            {"dry_run", c.dry_run},
            {"breaker_open", controller_.limits().tripped()},
            {"taken_last_hour", controller_.limits().taken_since(wall_ms() - 3'600'000)},
            {"drains_per_hour", c.drains_per_hour},
            {"agents", controller_.agents().agents().size()},
            {"agents_connected", connected},
            {"incidents_open", open},
            {"opensm_log", c.opensm_log},
            {"history", c.history},
            {"pid", ::getpid()}};
}

json admin_server::agents() const {
    json out = json::array();
    for (const auto& [node, a] : controller_.agents().agents()) {
        json one = {{"node", node},           {"connected", a.connected}, {"address", a.address},
                    {"boot", a.boot_id},      {"gpus", a.gpus},           {"since_ms", a.since_ms},
                    {"heard_ms", a.heard_ms}, {"events", a.events},       {"queued", a.queued},
                    {"dropped", a.dropped}};
        out.push_back(std::move(one));
    }
    return {{"agents", std::move(out)}};
}

task<json> admin_server::follow(std::uint64_t revision) {
    // A long poll: the answer comes when something changed, or after a while.
    asio::steady_timer timer(io_);
    for (int turn = 0; turn < 200 && controller_.incidents().revision() == revision; ++turn) {
        timer.expires_after(std::chrono::milliseconds(50));
        co_await timer.async_wait(as_result);
    }
    co_return list(most_listed);
}

task<result<json>> admin_server::answer(json meta, uid_t uid) {
    BANYAN_CO_TRY(const auto cmd, wire::get_string(meta, "cmd", 64));
    if (cmd == "incidents") {
        if (!meta.contains("revision")) co_return list(most_listed);
        BANYAN_CO_TRY(const auto revision, wire::get_number(meta, "revision"));
        co_return co_await follow(revision);
    }
    if (cmd == "status") co_return status();
    if (cmd == "agents") co_return agents();
    if (cmd == "explain") {
        BANYAN_CO_TRY(const auto number, wire::get_number(meta, "number", INT64_MAX));
        BANYAN_CO_TRY(const auto found, co_await controller_.find(number));
        if (!found)
            co_return fail(errc::not_found, fmt::format("there is no incident f{:05d}", number),
                           "banyan-fault incidents");
        co_return to_json(*found);
    }
    if (uid != 0 && uid != ::getuid())
        co_return fail(errc::denied, fmt::format("\"{}\" is for root only", cmd));
    const auto who = fmt::format("uid {}", uid);
    json done = json::object();
    if (cmd == "close") {
        BANYAN_CO_TRY(const auto number, wire::get_number(meta, "number", INT64_MAX));
        BANYAN_CO_CHECK(co_await controller_.close(number, who));
    } else if (cmd == "resume") {
        BANYAN_CO_TRY(auto node, wire::get_string(meta, "node", 256));
        BANYAN_CO_TRY(const auto text, co_await controller_.resume(std::move(node), who));
        done["text"] = text;
    } else if (cmd == "reset-breaker") {
        controller_.reset_breaker();
    } else {
        co_return fail(errc::invalid_input, fmt::format("the controller does not know \"{}\"", cmd));
    }
    co_return done;
}

}  // namespace banyan::fault
