// SPDX-License-Identifier: BSD-3-Clause
//
// Listening, connecting and names.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "examples/trainer/failure.hpp"
#include "examples/trainer/net/stream.hpp"

namespace trainer {
namespace {

using banyan::unique_fd;

constexpr std::chrono::milliseconds retry{20};

sockaddr_in address_of(in_addr address, std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr = address;
    out.sin_port = htons(port);
    return out;
}

unique_fd tcp_socket() {
    unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throw failure_errno("cannot make a socket", errno);
    return fd;
}

int bind_to(int fd, const sockaddr_in& at) {
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
}

int milliseconds_to(clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
}

/// A connect that ends at `until` although the host does not answer; 0 or an errno.
int connect_within(int fd, const sockaddr_in& to, clock::time_point until) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    int err = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
    if (err == EINPROGRESS) {
        pollfd wait{fd, POLLOUT, 0};
        if (::poll(&wait, 1, milliseconds_to(until)) <= 0) return ETIMEDOUT;
        socklen_t size = sizeof err;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
    }
    if (err == 0) fcntl(fd, F_SETFL, 0);
    return err;
}

}  // namespace

unique_fd listen_on(in_addr address, std::uint16_t port, clock::time_point until) {
    for (;;) {
        auto fd = tcp_socket();
        const int on = 1;
        setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        int err = bind_to(fd.get(), address_of(address, port));
        if (err == 0 && ::listen(fd.get(), 4096) != 0) err = errno;
        if (err == 0) return fd;
        if (err != EADDRINUSE || clock::now() >= until)
            throw failure_errno("cannot listen on port " + std::to_string(port), err);
        std::this_thread::sleep_for(retry);
    }
}

std::uint16_t port_of(int listener) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    if (::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) != 0)
        throw failure_errno("cannot read the port of a listener", errno);
    return ntohs(at.sin_port);
}

unique_fd accept_one(int listener, clock::time_point until, const std::string& waiting_for) {
    for (;;) {
        pollfd wait{listener, POLLIN, 0};
        const int ready = ::poll(&wait, 1, milliseconds_to(until));
        if (ready == 0) throw failure("no connection from " + waiting_for + " in time");
        if (ready < 0 && errno != EINTR) throw failure_errno("cannot wait for a connection", errno);
        unique_fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (fd) return fd;
        if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
            throw failure_errno("cannot accept a connection", errno);
    }
}

unique_fd connect_to(const sockaddr_in& to, clock::time_point until, const std::string& peer) {
    for (;;) {
        auto fd = tcp_socket();
        const int err = connect_within(fd.get(), to, until);
        if (err == 0) return fd;
        // Refused: the peer is not up yet. Anything else may be a node that is going away, or one that is
        // just coming.
        if (clock::now() + retry >= until) throw failure_errno("cannot connect to " + peer, err);
        std::this_thread::sleep_for(retry);
    }
}

in_addr resolve(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int err = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); err != 0)
        throw failure("MASTER_ADDR \"" + host + "\" has no IPv4 address: " + gai_strerror(err));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    return reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
}

bool is_local(in_addr address) { return bind_to(tcp_socket().get(), address_of(address, 0)) == 0; }

}  // namespace trainer
