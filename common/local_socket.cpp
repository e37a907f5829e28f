// SPDX-License-Identifier: BSD-3-Clause
#include "common/local_socket.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include <sys/socket.h>

namespace banyan {
namespace {

#ifndef SO_PASSRIGHTS
constexpr int SO_PASSRIGHTS = 83;  // Linux 6.16; the headers may be older than the kernel
#endif

}  // namespace

bool refuse_descriptors(int listener) {
    const int no = 0;
    return ::setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no) == 0;
}

result<std::size_t> receive_plain(int connection, std::span<std::byte> into) {
    iovec part{into.data(), into.size()};
    msghdr packet{};
    packet.msg_iov = &part;
    packet.msg_iovlen = 1;
    // A look keeps the sender's references in the queue, and without room for them says that they are there.
    ssize_t seen = 0;
    do seen = ::recvmsg(connection, &packet, MSG_PEEK | MSG_DONTWAIT);
    while (seen < 0 && errno == EINTR);
    if (seen < 0) return fail_errno("reading from the client", errno);
    if ((packet.msg_flags & MSG_CTRUNC) != 0)
        return fail(errc::denied, "a message carries descriptors where none are taken");
    if (seen == 0) return std::size_t{0};
    // Not a byte more than was looked at.
    const auto got = ::recv(connection, into.data(), static_cast<std::size_t>(seen), MSG_DONTWAIT);
    if (got < 0) return fail_errno("reading from the client", errno);
    return static_cast<std::size_t>(got);
}

result<std::size_t> send_with_descriptor(int connection, std::span<const std::byte> data, int passed) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{const_cast<std::byte*>(data.data()), data.size()};
    msghdr packet{};
    packet.msg_iov = &part;
    packet.msg_iovlen = 1;
    packet.msg_control = control.data();
    packet.msg_controllen = control.size();
    auto* c = CMSG_FIRSTHDR(&packet);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &passed, sizeof passed);
    ssize_t sent = 0;
    do sent = ::sendmsg(connection, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return fail(errc::unavailable, "no room to send now");
    return fail(errc::denied, std::string("sending to the client: ") + std::strerror(errno));
}

void close_apart(unique_fd connection) {
    if (!connection) return;
    ::shutdown(connection.get(), SHUT_RDWR);  // from here on nothing more comes
    std::array<std::byte, 16 * 1024> unread;
    for (;;) {
        const auto got = receive_plain(connection.get(), unread);
        if (got && *got != 0) continue;
        if (got || got.error().code != errc::denied) return;
        break;
    }
    const int fd = connection.release();
    try {
        std::thread([fd] { ::close(fd); }).detach();
    } catch (const std::system_error&) {
        // No thread: the descriptor stays open, which costs less than to wait.
    }
}

}  // namespace banyan
