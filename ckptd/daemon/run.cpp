// SPDX-License-Identifier: BSD-3-Clause
//
// Sockets, connections, the clock, the end.
#include <exception>
#include <filesystem>
#include <thread>

#include <boost/asio/detached.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/daemon/daemon.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t max_clients = 8192;
constexpr std::uint32_t max_clients_of_user = 2048;
constexpr std::size_t user_meta = 64 * 1024;
constexpr milliseconds tick_every{250};
constexpr milliseconds first_session_patience{60'000};  // whoever started this daemon may have died
constexpr milliseconds finish_patience{3000};           // at the end, for copies and flushes under way
constexpr milliseconds leave_patience{4000};            // of a successor: the end, and some air

}  // namespace

daemon::daemon(asio::io_context& io, settings s)
    : io_(io),
      settings_(std::move(s)),
      first_session_by_(clock::now() + first_session_patience),
      budget_(std::make_shared<memory_budget>(settings_.memory_limit)),
      workers_(settings_.threads),
      storage_(settings_.storage_threads),
      munge_(1),
      local_acceptor_(io),
      peers_(io.get_executor(),
             peer::settings::of(peer_role, settings_.node, settings_.munge_socket, settings_.encrypt, munge_,
                                workers_),
             {}, [this](auto connection) { return serve_peer(std::move(connection)); }),
      signals_(io, SIGTERM, SIGINT) {}

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
    BANYAN_CHECK(peers_.open(settings_.bind, settings_.port));
    BANYAN_CHECK(open_local());
    spawn(accept_local());
    spawn(tick());
    spawn(stop_on_signal());
    spdlog::info("node {}: {} and {}:{}, {} bytes of memory at most", settings_.node, settings_.socket,
                 settings_.bind, settings_.port, settings_.memory_limit);
    return {};
}

// One daemon a socket. The kernel frees the lock with the process, so a dead daemon holds up nobody, and one
// that is about to leave is waited for: its port and its socket are its own until then.
result<void> daemon::lock_socket() {
    const auto path = settings_.socket + ".lock";
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock_) return fail_errno(fmt::format("cannot open {}", path), errno);
    const auto until = clock::now() + leave_patience;
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (wire::connect_unix(settings_.socket, clock::now() + milliseconds(500)))
            return fail(errc::conflict, fmt::format("another banyan-ckptd answers on {}", settings_.socket),
                        "stop it first, or give this one another socket in [ckptd] of banyan.conf");
        if (clock::now() >= until)
            return fail(errc::conflict, fmt::format("another process holds {}", path),
                        "look who with: fuser " + path);
        std::this_thread::sleep_for(milliseconds(5));
    }
    return {};
}

result<void> daemon::open_local() {
    const auto& path = settings_.socket;
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return fail(errc::conflict, fmt::format("{} exists and is not a socket", path));
        ::unlink(path.c_str());  // a dead daemon's: this one holds the lock
    }
    boost::system::error_code ec;
    if (path.size() >= sizeof(sockaddr_un::sun_path))
        return fail(errc::invalid_input, fmt::format("the socket path {} is too long", path));
    local_acceptor_.open(asio::local::stream_protocol(), ec);
    if (!ec) local_acceptor_.bind(asio::local::stream_protocol::endpoint(path), ec);
    if (!ec) local_acceptor_.listen(1024, ec);
    if (ec) return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", path, ec.message()));
    // Everybody may connect: who may do what is decided per message, by the kernel's word on the peer.
    if (::chmod(path.c_str(), 0666) != 0)
        return fail_errno(fmt::format("cannot open {} to the jobs", path), errno);
    return {};
}

task<void> daemon::accept_local() {
    while (!stopping_) {
        auto [ec, socket] = co_await local_acceptor_.async_accept(as_result);
        if (ec == asio::error::operation_aborted) co_return;
        if (ec) {
            asio::steady_timer pause(io_, milliseconds(50));  // no descriptors left: come back
            co_await pause.async_wait(as_result);
            continue;
        }
        ucred peer{};
        socklen_t bytes = sizeof peer;
        if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) continue;
        const bool full = clients_.size() >= max_clients || clients_of_[peer.uid] >= max_clients_of_user;
        if (full && peer.uid != 0) continue;
        auto client = std::make_shared<local_client>(
            local_client{next_id_++, std::move(socket), peer.uid, peer.pid, nullptr, 0, 0, -1, nullptr});
        clients_.emplace(client->id, client);
        ++clients_of_[peer.uid];
        spawn(serve_local(client));
    }
}

task<void> daemon::serve_local(client_ptr client) {
    while (!stopping_) {
        auto head = co_await read_head(client->socket, client->uid == 0 ? wire::max_meta : user_meta);
        if (!head || head->first.body_bytes != 0) break;
        const auto type = head->first.type;
        const bool one_way = type == static_cast<std::uint16_t>(message::sealed) ||
                             type == static_cast<std::uint16_t>(message::stuck);
        auto answer = co_await handle_local(client, type, std::move(head->second));
        if (one_way) continue;
        json meta = answer ? std::move(*answer) : wire::error_meta(answer.error());
        const auto reply_type = static_cast<std::uint16_t>(message::reply);
        if (client->passed) {
            const auto memory = std::move(client->passed);
            const int fd = client->socket.native_handle();
            const auto work = [fd, memory, reply_type, meta] {
                return wire::send_frame_with_fd(fd, reply_type, meta, memory->fd(),
                                                clock::now() + milliseconds(500));
            };
            const auto sent = co_await run_blocking(workers_, work);
            if (!sent) break;
        } else if (!co_await wire::write_frame(client->socket, reply_type, std::move(meta))) {
            break;
        }
    }
    on_disconnect(client);
    boost::system::error_code ignored;
    client->socket.close(ignored);
    clients_.erase(client->id);
    if (--clients_of_[client->uid] == 0) clients_of_.erase(client->uid);
}

task<void> daemon::serve_peer(std::shared_ptr<peer::channel> connection) {
    peer_state state;
    state.connection = std::move(connection);
    result<void> whole;
    while (whole && !stopping_) {
        auto head = co_await state.connection->read_head();
        if (!head) break;
        whole = co_await handle_peer(&state, head->first, std::move(head->second));
    }
    end_incoming(&state);
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
        const auto before = sessions_;
        for (const auto& [job, s] : before) {
            if (s->detached && clock::now() >= s->lease_end) {
                spdlog::info("job {}: lease ended, memory is freed", job);
                free_session(s);
            } else {
                spawn(vote_again(s));
                watch_votes(s);
            }
        }
        const bool needed =
            !sessions_.empty() || !refused_.empty() || (!had_session_ && clock::now() < first_session_by_);
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
    const auto until = clock::now() + finish_patience;
    const auto before = sessions_;
    for (const auto& [job, s] : before)
        while ((s->pending != 0 || s->flushing) && clock::now() < until)
            co_await s->changed->wait(std::min(until, clock::now() + milliseconds(100)));
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
