// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/local_server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/local_socket.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t user_meta = 4096;  // a rank's longest message has about 100 bytes
constexpr milliseconds frame_timeout{
    10'000};                                 // from the first byte of a request to its last; for a reply too
constexpr milliseconds leave_timeout{4000};  // of a predecessor: the end, and some air
// Of an answer that waits for its reader in the kernel, where nobody counts it for a user; and of one that
// brings a part of a step.
constexpr int send_buffer = 16 * 1024, send_buffer_of_bytes = 512 * 1024;

// Never socket.close(): what its owner left unread may be descriptors whose end takes long.
void hang_up(asio::local::stream_protocol::socket& socket) {
    boost::system::error_code ec;
    if (!socket.is_open()) return;
    const int fd = socket.release(ec);
    if (!ec) close_apart(unique_fd(fd));
}

// What we have sent and the client has not read. A descriptor there is in flight: the kernel counts those of
// all its clients against the daemon, and passes no more beyond the daemon's limit of open files.
bool has_unread(asio::local::stream_protocol::socket& socket) {
    int bytes = 0;
    return socket.is_open() && ::ioctl(socket.native_handle(), SIOCOUTQ, &bytes) == 0 && bytes != 0;
}

// Whoever it is has closed its end: nobody reads an answer.
bool has_hung_up(asio::local::stream_protocol::socket& socket) {
    pollfd p{socket.native_handle(), 0, 0};
    return !socket.is_open() || (::poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0);
}

bool is(message what, std::uint16_t type) { return type == static_cast<std::uint16_t>(what); }

local_limits::demand demand_of(std::uint16_t type) {
    if (is(message::sealed, type) || is(message::skipped, type)) return local_limits::demand::note;
    return is(message::status, type) ? local_limits::demand::status : local_limits::demand::request;
}

// What nobody is served with who does not hear the answer.
bool is_for_its_answer(std::uint16_t type) {
    return is(message::status, type) || is(message::attach, type) || is(message::attach_state, type) ||
           is(message::attach_part, type) || is(message::restore, type) || is(message::look, type) ||
           is(message::read, type);
}

// Counts an answer until it has been read, or nobody will.
class counted_answer {
  public:
    counted_answer(local_limits& limits, uid_t uid, std::size_t bytes)
        : limits_(limits), uid_(uid), bytes_(static_cast<std::int64_t>(bytes)) {
        limits_.under_way(uid_, bytes_);
    }
    ~counted_answer() { limits_.under_way(uid_, -bytes_); }
    counted_answer(const counted_answer&) = delete;

  private:
    local_limits& limits_;
    uid_t uid_;
    std::int64_t bytes_;
};

// Until the client has read everything, or is gone. Meanwhile the connection counts as his.
task<void> until_read(client_ptr client, clock::time_point until) {
    timer pause(client->socket.get_executor());
    while (has_unread(client->socket) && clock::now() < until) {
        pause.expires_after(milliseconds(50));
        co_await pause.async_wait(as_result);
    }
}

bool is_at(int fd, const std::string& path) {
    struct stat mine {};
    struct stat there {};
    return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

// A client's connection as wire::read_head reads it.
struct plain_reader {
    client_ptr client;
};

task<result<void>> read_bytes(plain_reader& from, std::span<std::byte> into) {
    auto& socket = from.client->socket;
    while (!into.empty()) {
        if (auto [ec] = co_await socket.async_wait(asio::socket_base::wait_read, as_result); ec)
            co_return fail(errc::unavailable, "the client closed the connection: " + ec.message());
        BANYAN_CO_TRY(const auto got, receive_plain(socket.native_handle(), into));
        if (got == 0) co_return fail(errc::unavailable, "the client closed the connection");
        into = into.subspan(got);
    }
    co_return result<void>{};
}

// Ends the connection when it is not told in time that all is well.
class watchdog {
  public:
    explicit watchdog(const client_ptr& client) : client_(client), timer_(client->socket.get_executor()) {}
    void arm() {
        timer_.expires_after(frame_timeout);
        timer_.async_wait([weak = client_](boost::system::error_code ec) {
            const auto client = weak.lock();
            if (ec || !client) return;
            boost::system::error_code ignored;
            client->socket.shutdown(asio::socket_base::shutdown_both, ignored);
        });
    }
    void disarm() { timer_.cancel(); }

  private:
    std::weak_ptr<local_client> client_;
    timer timer_;
};

task<result<std::pair<wire::header, json>>> read_request(client_ptr client, watchdog& dog) {
    // A rank may be silent for hours; once it has begun to speak it is to finish.
    if (auto [ec] = co_await client->socket.async_wait(asio::socket_base::wait_read, as_result); ec)
        co_return fail(errc::unavailable, "the client closed the connection: " + ec.message());
    client->busy = true;
    dog.arm();
    plain_reader reader{client};
    auto head = co_await wire::read_head(reader, client->uid == 0 ? wire::max_meta : user_meta);
    dog.disarm();
    if (head && head->first.body_bytes != 0)
        co_return fail(errc::invalid_input, "a message has a body where none belongs");
    co_return head;
}

std::string reply_of(const json& meta, std::size_t body = 0) {
    auto text = meta.dump(-1, ' ', false, json::error_handler_t::replace);
    const auto head =
        wire::encode_header({static_cast<std::uint16_t>(message::reply),
                             static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(body)});
    text.insert(0, reinterpret_cast<const char*>(head.data()), head.size());
    return text;
}

// With a descriptor on its first byte, where there is one.
task<result<void>> send(client_ptr client, const std::string& text, int passed) {
    auto& socket = client->socket;
    const auto first = std::as_bytes(std::span(text)).first(1);
    while (passed >= 0) {
        const auto sent = send_with_descriptor(socket.native_handle(), first, passed);
        if (sent) break;
        if (sent.error().code != errc::unavailable) co_return std::unexpected(sent.error());
        if (auto [ec] = co_await socket.async_wait(asio::socket_base::wait_write, as_result); ec)
            co_return fail(errc::unavailable, "the client closed the connection: " + ec.message());
    }
    const std::size_t done = passed >= 0 ? 1 : 0;
    const auto rest = asio::buffer(text.data() + done, text.size() - done);
    if (auto [ec, n] = co_await asio::async_write(socket, rest, as_result); ec)
        co_return fail(errc::unavailable, "the client closed the connection: " + ec.message());
    co_return result<void>{};
}

task<result<void>> send_bytes(client_ptr client, std::span<const std::byte> bytes) {
    auto& socket = client->socket;
    boost::system::error_code ignored;
    socket.set_option(asio::socket_base::send_buffer_size(send_buffer_of_bytes), ignored);
    const auto all = asio::buffer(bytes.data(), bytes.size());
    auto [ec, n] = co_await asio::async_write(socket, all, as_result);
    socket.set_option(asio::socket_base::send_buffer_size(send_buffer), ignored);
    if (ec) co_return fail(errc::unavailable, "the client closed the connection: " + ec.message());
    co_return result<void>{};
}

}  // namespace

std::uint32_t local_connections() {
    rlimit files{};
    return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? local_limits::total_for(files.rlim_cur)
                                                   : local_limits::total_for(1024);
}

local_server::local_server(daemon_core& core, handlers h)
    : core_(core), handlers_(std::move(h)), limits_(local_connections()), acceptor_(core.io) {}

// One daemon a socket. The kernel frees the lock with the last process that has it, so a dead daemon holds up
// nobody but by its keeper, and one that is about to leave is waited for: its port and its socket are its own
// until then.
result<void> local_server::lock(std::vector<keeper::handed_over>& kept) {
    const auto path = core_.config.socket + ".lock";
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    for (auto& one : kept) {
        if (one.what != keeper::contents::lock) continue;
        if (!lock_ && is_at(one.fd.get(), path))
            lock_ = std::move(one.fd);
        else
            core_.keeper->drop(one.number);  // of another configuration
    }
    std::erase_if(kept, [](const auto& one) { return one.what == keeper::contents::lock; });
    const bool is_kept = static_cast<bool>(lock_);
    if (!is_kept) lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock_) return fail_errno(fmt::format("cannot open {}", path), errno);
    const auto until = clock::now() + leave_timeout;
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (wire::connect_unix(core_.config.socket, banyan::clock::now() + milliseconds(500)))
            return fail(errc::conflict,
                        fmt::format("another banyan-ckptd answers on {}", core_.config.socket),
                        "stop it first, or give this one another socket in [ckptd] of banyan.conf");
        if (clock::now() >= until)
            return fail(errc::conflict, fmt::format("another process holds {}", path),
                        "look who with: fuser " + path);
        clock::sleep_for(milliseconds(5));
    }
    if (!is_kept) core_.keeper->hold(keeper::contents::lock, lock_.get());
    // Whom logrotate is to tell.
    const auto pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock_.get(), 0) == 0 && ::pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0)
        spdlog::warn("cannot write to {}: {}", path, std::strerror(errno));
    return {};
}

result<void> local_server::listen() {
    const auto& path = core_.config.socket;
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return fail(errc::conflict, fmt::format("{} exists and is not a socket", path));
        ::unlink(path.c_str());  // a dead daemon's: this one holds the lock
    }
    boost::system::error_code ec;
    if (path.size() >= sizeof(sockaddr_un::sun_path))
        return fail(errc::invalid_input, fmt::format("the socket path {} is too long", path));
    acceptor_.open(asio::local::stream_protocol(), ec);
    if (!ec) acceptor_.bind(asio::local::stream_protocol::endpoint(path), ec);
    // Where the kernel cannot refuse them, receive_plain() does.
    if (!ec) refuse_descriptors(acceptor_.native_handle());
    if (!ec) acceptor_.listen(1024, ec);
    if (ec) return fail(errc::unavailable, fmt::format("cannot listen on {}: {}", path, ec.message()));
    // Everybody may connect: who may do what is decided per message, by the kernel's word on the peer.
    if (::chmod(path.c_str(), 0666) != 0)
        return fail_errno(fmt::format("cannot open {} to the jobs", path), errno);
    return {};
}

result<void> local_server::open() {
    BANYAN_CHECK(listen());
    core_.spawn(accept());
    return {};
}

void local_server::close() {
    ::unlink(core_.config.socket.c_str());
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

task<void> local_server::accept() {
    bool scarce = false;
    while (!core_.stopping) {
        auto [ec, socket] = co_await acceptor_.async_accept(as_result);
        if (ec == asio::error::operation_aborted) co_return;
        if (ec) {
            // What is held back lets root through; a user is sent away at once, so that root does not wait
            // behind him in the listener's queue.
            scarce = true;
            reserve_.spend();
            std::uint64_t held_back = 0;
            if (core_.limiter.pass("accept", clock::now(), held_back))
                spdlog::error("no connection can be taken: {}; users wait until there is room", ec.message());
            timer pause(core_.io, milliseconds(50));
            co_await pause.async_wait(as_result);
            continue;
        }
        ucred peer{};
        socklen_t bytes = sizeof peer;
        if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) continue;
        if (scarce && peer.uid != 0) {
            hang_up(socket);
            scarce = !reserve_.refill();
            continue;
        }
        try {
            admit(std::move(socket), peer.uid, peer.pid);
        } catch (const std::bad_alloc&) {
            spdlog::error("no memory for a connection of uid {}", peer.uid);
        }
        if (scarce) scarce = !reserve_.refill();
    }
}

void local_server::admit(asio::local::stream_protocol::socket socket, uid_t uid, pid_t pid) {
    auto client = std::make_shared<local_client>(std::move(socket), uid, pid);
    const bool has_session =
        std::ranges::any_of(core_.sessions, [&](const auto& one) { return one.second->request.uid == uid; });
    const auto verdict = limits_.enter(uid, has_session);
    if (verdict == local_limits::verdict::refuse) {
        std::uint64_t held_back = 0;
        if (refusals_.pass(std::to_string(uid), clock::now(), held_back))
            spdlog::warn("uid {} has as many connections as it may: one more is refused", uid);
        hang_up(client->socket);
        return;
    }
    if (verdict == local_limits::verdict::make_room) {
        // The newest that does nothing yet. Attached ranks stay: root has let their jobs in.
        const auto heavy = limits_.gives_way();
        for (auto it = clients_.rbegin(); it != clients_.rend(); ++it) {
            if (it->second->uid != heavy || it->second->session_of_rank() || !it->second->socket.is_open() ||
                has_unread(it->second->socket))
                continue;
            hang_up(it->second->socket);
            break;
        }
    }
    boost::system::error_code ignored;
    client->socket.set_option(asio::socket_base::send_buffer_size(send_buffer), ignored);
    client->id = next_id_++;
    clients_.emplace(client->id, client);
    core_.spawn(serve(client));
}

task<void> local_server::serve(client_ptr client) {
    try {
        co_await converse(client);
    } catch (const std::exception& e) {
        spdlog::error("a request of uid {} ended with an exception: {}", client->uid, e.what());
    }
    client->left = true;
    handlers_.left(client);
    boost::system::error_code ignored;
    client->socket.shutdown(asio::socket_base::shutdown_both, ignored);
    co_await until_read(client, clock::time_point::max());
    hang_up(client->socket);
    clients_.erase(client->id);
    limits_.leave(client->uid);
}

task<void> local_server::converse(client_ptr client) {
    watchdog dog(client);
    while (!core_.stopping) {
        auto asked = co_await read_request(client, dog);
        if (!asked) co_return;
        const auto type = asked->first.type;
        const auto what = demand_of(type);
        const bool no_use = is_for_its_answer(type) && has_hung_up(client->socket);
        if (!no_use) co_await take_turn(client, what);
        if (no_use || (is_for_its_answer(type) && has_hung_up(client->socket))) co_return;
        if (what == local_limits::demand::note) {
            co_await handlers_.answer(client, type, std::move(asked->second));
            client->busy = false;
            continue;
        }
        const auto text = co_await answer(client, type, std::move(asked->second));
        const auto body = std::exchange(client->body, {});
        const counted_answer counted(limits_, client->uid, text.size() + body.at.size());
        dog.arm();
        int passed = -1;
        const auto memory = std::exchange(client->passed, nullptr);
        if (memory) {
            // One descriptor in flight for each connection.
            co_await until_read(client, clock::now() + frame_timeout);
            if (has_unread(client->socket)) co_return;
            // From here on the rank can hold it, whatever becomes of the answer.
            memory->share();
            passed = memory->fd();
        }
        if (!co_await send(client, text, passed)) co_return;
        if (!body.at.empty() && !co_await send_bytes(client, body.at)) co_return;
        dog.disarm();
        client->busy = false;
    }
}

task<std::string> local_server::answer(client_ptr client, std::uint16_t type, json meta) {
    const bool is_status = demand_of(type) == local_limits::demand::status;
    if (is_status && limits_.reads_too_little(client->uid))
        co_return reply_of(wire::error_meta(
            {errc::exhausted,
             fmt::format("long answers to uid {} wait to be read on other connections: there is no more "
                         "before",
                         client->uid),
             "read each answer, or close its connection"}));
    const auto answer = co_await handlers_.answer(client, type, std::move(meta));
    if (!answer) client->body = {};
    auto text = reply_of(answer ? *answer : wire::error_meta(answer.error()), client->body.at.size());
    if (is_status) limits_.answered(client->uid, text.size());
    co_return text;
}

// Also of attached ranks: a job may have thousands of them on this node.
task<void> local_server::take_turn(client_ptr client, local_limits::demand what) {
    const auto pause = limits_.turn(client->uid, what, clock::now());
    if (pause == clock::duration{}) co_return;
    timer waits(client->socket.get_executor(), pause);
    co_await waits.async_wait(as_result);
}

}  // namespace banyan::ckpt
