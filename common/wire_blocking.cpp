// SPDX-License-Identifier: BSD-3-Clause
//
// The blocking half of the framing: poll with a deadline, then send or receive what is possible.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/wire.hpp"

namespace banyan::wire {
namespace {

result<void> wait_for(int fd, short events, deadline until, const char* doing) {
    for (;;) {
        const int left = clock::poll_ms(until);
        if (left == 0) return fail(errc::unavailable, fmt::format("{}: no answer in time", doing));
        pollfd p{fd, events, 0};
        const int n = ::poll(&p, 1, left);
        if (n > 0) return {};
        if (n < 0 && errno != EINTR) return fail_errno(doing, errno);
    }
}

result<void> send_bytes(int fd, std::span<const std::byte> data, deadline until) {
    while (!data.empty()) {
        const auto put = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put > 0) {
            data = data.subspan(static_cast<std::size_t>(put));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            BANYAN_CHECK(wait_for(fd, POLLOUT, until, "sending to the peer"));
        } else if (errno != EINTR) {
            return fail_errno("sending to the peer", errno);
        }
    }
    return {};
}

void take_descriptor(msghdr& message, unique_fd* passed) {
    for (auto* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            unique_fd owned(fd);
            if (passed && !*passed) *passed = std::move(owned);
        }
    }
}

result<void> receive_bytes(int fd, std::span<std::byte> into, deadline until, unique_fd* passed) {
    while (!into.empty()) {
        alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
        iovec part{into.data(), into.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const auto got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got > 0) {
            take_descriptor(message, passed);
            into = into.subspan(static_cast<std::size_t>(got));
        } else if (got == 0) {
            return fail(errc::unavailable, "the peer closed the connection");
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            BANYAN_CHECK(wait_for(fd, POLLIN, until, "waiting for the peer"));
        } else if (errno != EINTR) {
            return fail_errno("receiving from the peer", errno);
        }
    }
    return {};
}

std::vector<std::byte> head_of(std::uint16_t type, const std::string& meta, std::size_t body_bytes) {
    const auto head = encode_header(
        {type, static_cast<std::uint32_t>(meta.size()), static_cast<std::uint32_t>(body_bytes)});
    std::vector<std::byte> out(head.begin(), head.end());
    const auto text = std::as_bytes(std::span(meta));
    out.insert(out.end(), text.begin(), text.end());
    return out;
}

}  // namespace

result<unique_fd> connect_unix(const std::string& path, deadline until) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path)
        return fail(errc::invalid_input, fmt::format("\"{}\" is not a usable socket path", path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail_errno("cannot open a socket", errno);
    while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        if (errno == EINTR) continue;
        // EAGAIN on a Unix socket: the listener's queue is full, and there is nothing to poll on.
        if (errno != EAGAIN || clock::now() >= until)
            return fail_errno(fmt::format("cannot connect to {}", path), errno);
        ::poll(nullptr, 0, 1);
    }
    return fd;
}

result<void> send_frame(int fd, std::uint16_t type, const nlohmann::json& meta,
                        std::span<const std::byte> body, deadline until) {
    const auto head =
        head_of(type, meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), body.size());
    BANYAN_CHECK(send_bytes(fd, head, until));
    return send_bytes(fd, body, until);
}

result<frame> receive_frame(int fd, deadline until, unique_fd* passed) {
    std::array<std::byte, header_bytes> head{};
    BANYAN_CHECK(receive_bytes(fd, head, until, passed));
    BANYAN_TRY(const auto h, decode_header(head));
    frame out;
    out.type = h.type;
    std::vector<std::byte> meta(h.meta_bytes);
    BANYAN_CHECK(receive_bytes(fd, meta, until, nullptr));
    BANYAN_TRY(out.meta, decode_meta(meta));
    out.body.resize(h.body_bytes);
    BANYAN_CHECK(receive_bytes(fd, out.body, until, nullptr));
    return out;
}

result<frame> call(int fd, std::uint16_t type, const nlohmann::json& meta, deadline until) {
    BANYAN_CHECK(send_frame(fd, type, meta, {}, until));
    BANYAN_TRY(auto reply, receive_frame(fd, until));
    if (auto e = error_from(reply.meta)) return std::unexpected(std::move(*e));
    return reply;
}

}  // namespace banyan::wire
