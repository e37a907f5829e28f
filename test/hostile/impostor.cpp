// SPDX-License-Identifier: BSD-3-Clause
#include "impostor.hpp"

#include <fstream>
#include <functional>
#include <random>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace hostile {

namespace peer = banyan::peer;
namespace wire = banyan::wire;

namespace {

wire::deadline soon() { return banyan::clock::now() + std::chrono::seconds(10); }

sockaddr_in place(const std::string& address, std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &a.sin_addr);
    return a;
}

template <class Function>
std::string end_of(Function which, int fd) {
    sockaddr_in a{};
    socklen_t n = sizeof a;
    which(fd, reinterpret_cast<sockaddr*>(&a), &n);
    char text[64];
    ::inet_ntop(AF_INET, &a.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(a.sin_port));
}

bool readable(int fd, int ms) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, ms) > 0;
}

banyan::unique_fd try_dial(const sockaddr_in& to, const std::string& from, std::uint16_t from_port) {
    banyan::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto own = place(from, from_port);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
        fd.reset();
    return fd;
}

}  // namespace

banyan::unique_fd dial(const std::string& to, std::uint16_t port, bool reserved, const std::string& from) {
    static std::atomic<unsigned> next{std::random_device{}()};
    const auto target = place(to, port);
    for (int i = 0; i < 300; ++i) {
        const auto own = static_cast<std::uint16_t>(reserved ? 700 + next++ % 300 : 0);
        if (auto fd = try_dial(target, from, own)) return fd;
    }
    FAIL("cannot connect to " << to << ":" << port);
    return {};
}

bool answers(const std::string& to, std::uint16_t port) {
    return static_cast<bool>(try_dial(place(to, port), "127.0.0.1", 0));
}

bool has_hung_up(int fd) {
    char none = 0;
    return ::recv(fd, &none, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool is_closed(int fd, std::chrono::milliseconds timeout) {
    const auto until = banyan::clock::now() + timeout;
    std::array<char, 4096> sink{};
    while (banyan::clock::now() < until)
        if (readable(fd, 1) && ::recv(fd, sink.data(), sink.size(), 0) <= 0) return true;
    return false;
}

caller::caller(const std::string& to, std::uint16_t port, std::string node, std::string wanted,
               const std::string& role, const std::string& from)
    : fd_(dial(to, port, true, from)), keys_(peer::key_pair::make().value()) {
    statement_ = {role,
                  std::move(node),
                  std::move(wanted),
                  {},
                  end_of(::getsockname, fd_.get()),
                  end_of(::getpeername, fd_.get()),
                  peer::to_hex(keys_.public_key()),
                  {},
                  false};
}

std::optional<json> caller::greet() {
    const json hello{{"protocol", peer::protocol_version},
                     {"node", statement_.caller},
                     {"wanted", statement_.wanted},
                     {"role", statement_.role},
                     {"key", statement_.caller_key}};
    if (!wire::send_frame(fd_.get(), 0xff01, hello, {}, soon())) return std::nullopt;
    const auto answer = wire::receive_frame(fd_.get(), soon());
    if (!answer || answer->type != 0xff02) return std::nullopt;
    statement_.listener = answer->meta["node"];
    statement_.listener_key = answer->meta["key"];
    statement_.encrypt = answer->meta.contains("encrypt");
    theirs_ = peer::from_hex(statement_.listener_key).value();
    return answer->meta;
}

std::uint16_t caller::prove(const std::string& credential) {
    if (!wire::send_frame(fd_.get(), 0xff03, {{"credential", credential}}, {}, soon())) return 0;
    const auto answer = wire::receive_frame(fd_.get(), soon());
    if (!answer) return 0;
    if (answer->type == welcome) {
        const auto keys = keys_.agree(theirs_, statement_.text(true)).value();
        sending_.emplace(keys.from_caller);
        receiving_.emplace(keys.from_listener);
    }
    return answer->type;
}

bool caller::say(std::uint16_t type, const json& meta, std::string body, std::size_t kept_back) {
    auto text = meta.dump();
    const auto head = wire::encode_header(
        {type, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(body.size())});
    std::string out(reinterpret_cast<const char*>(head.data()), head.size());
    const auto add = [&out](const banyan::peer::tag& t) {
        out.append(reinterpret_cast<const char*>(t.data()), t.size());
    };
    out += text;
    add(sending_->seal(head, std::as_bytes(std::span(text)), nullptr));
    if (!body.empty()) {
        out += body;
        add(sending_->seal({}, std::as_bytes(std::span(body)), nullptr));
    }
    const auto bytes = out.size() - kept_back;
    return ::send(fd_.get(), out.data(), bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

std::optional<json> caller::ask(std::uint16_t type, const json& meta, const std::string& body) {
    if (!say(type, meta, body)) return std::nullopt;
    const auto answer = wire::receive_frame(fd_.get(), soon());
    banyan::peer::tag behind{};  // the next answer begins after it
    if (!answer || ::recv(fd_.get(), behind.data(), behind.size(), MSG_WAITALL) <= 0) return std::nullopt;
    return answer->meta;
}

relay::relay(const std::string& at, const std::string& to, std::uint16_t port)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), to_(to), port_(port) {
    const int yes = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto own = place(at, port);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    worker_ = std::thread([this] { serve(); });
}

relay::~relay() {
    over_ = true;
    worker_.join();
}

std::string relay::heard() const {
    const std::scoped_lock held(lock_);
    return heard_;
}

void relay::serve() {
    std::vector<std::thread> passing;
    while (!over_) {
        if (!readable(listener_.get(), 50)) continue;
        const int in = ::accept(listener_.get(), nullptr, nullptr);
        if (in < 0) continue;
        ++connections_;
        passing.emplace_back([this, in] {
            const banyan::unique_fd caller(in), target(dial(to_, port_));
            std::thread back([&] { pass(target.get(), caller.get(), false); });
            pass(caller.get(), target.get(), true);
            back.join();
        });
    }
    for (auto& t : passing) t.join();
}

void relay::pass(int from, int to, bool record) {
    std::array<char, 64 * 1024> buffer{};
    while (!over_) {
        if (!readable(from, 50)) continue;
        const auto n = ::recv(from, buffer.data(), buffer.size(), 0);
        if (n <= 0) break;
        if (record) {
            const std::scoped_lock held(lock_);
            heard_.append(buffer.data(), static_cast<std::size_t>(n));
        }
        if (::send(to, buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(to, SHUT_RDWR);
    ::shutdown(from, SHUT_RDWR);
}

wire_tap::wire_tap() : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP))) {
    REQUIRE(fd_);
    const int room = 64 << 20;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    worker_ = std::thread([this] {
        std::vector<char> packet(70'000);
        while (!over_) {
            if (!readable(fd_.get(), 50)) continue;
            const auto n = ::recv(fd_.get(), packet.data(), packet.size(), 0);
            if (n <= 0) continue;
            const std::scoped_lock held(lock_);
            seen_.append(packet.data(), static_cast<std::size_t>(n));
        }
    });
}

wire_tap::~wire_tap() {
    over_ = true;
    worker_.join();
}

bool wire_tap::saw(const std::string& what) const {
    const std::scoped_lock held(lock_);
    return seen_.find(what) != std::string::npos;
}

std::size_t resident(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/statm");
    std::size_t size = 0, pages = 0;
    in >> size >> pages;
    return pages * 4096;
}

}  // namespace hostile
