// SPDX-License-Identifier: BSD-3-Clause
//
// Sending and receiving on one connection.
#include "examples/trainer/net/stream.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include "examples/trainer/failure.hpp"

namespace trainer {
namespace {

struct message_head {
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
};

[[noreturn]] void lost(const std::string& peer, int err) {
    if (err == 0) throw failure("lost " + peer + ": it closed the connection");
    if (err == EAGAIN || err == EWOULDBLOCK) throw failure("lost " + peer + ": no answer in time");
    throw failure_errno("lost " + peer, err);
}

}  // namespace

failure failure_errno(const std::string& what, int err) {
    return failure(what + ": " + std::generic_category().message(err));
}

stream::stream(banyan::unique_fd fd, std::string peer, std::chrono::milliseconds timeout)
    : fd_(std::move(fd)), peer_(std::move(peer)) {
    const int on = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    limit(timeout);
}

void stream::limit(std::chrono::milliseconds timeout) {
    const timeval limit{timeout.count() / 1000, (timeout.count() % 1000) * 1000};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void stream::send(std::span<const std::byte> data) {
    while (!data.empty()) {
        const auto n = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) lost(peer_, errno);
        data = data.subspan(static_cast<std::size_t>(n));
    }
}

void stream::receive(std::span<std::byte> data) {
    while (!data.empty()) {
        const auto n = ::recv(fd_.get(), data.data(), data.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) lost(peer_, n < 0 ? errno : 0);
        data = data.subspan(static_cast<std::size_t>(n));
    }
}

void stream::send_tagged(std::uint32_t tag, std::span<const float> data) {
    const auto bytes = std::as_bytes(data);
    const message_head head{tag, bytes.size()};
    const auto head_bytes = std::as_bytes(std::span(&head, 1));
    // Head and start of the data leave in one packet; what the socket does not take at once follows.
    std::array<iovec, 2> parts{iovec{const_cast<std::byte*>(head_bytes.data()), head_bytes.size()},
                               iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t n = 0;
    while ((n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL)) < 0)
        if (errno != EINTR) lost(peer_, errno);
    const auto sent = static_cast<std::size_t>(n);
    if (sent < head_bytes.size()) send(head_bytes.subspan(sent));
    send(bytes.subspan(sent > head_bytes.size() ? sent - head_bytes.size() : 0));
}

void stream::receive_tagged(std::uint32_t tag, std::span<float> data) {
    message_head head;
    receive(std::as_writable_bytes(std::span(&head, 1)));
    if (head.tag != tag || head.bytes != data.size_bytes())
        throw failure(peer_ + " sent message " + std::to_string(head.tag) + " of " +
                      std::to_string(head.bytes) + " bytes; expected " + std::to_string(tag) + " of " +
                      std::to_string(data.size_bytes()));
    receive(std::as_writable_bytes(data));
}

}  // namespace trainer
