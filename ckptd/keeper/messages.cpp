// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/keeper/messages.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace banyan::ckpt::keeper {

bool send_record(int socket, const record& r, int fd, int flags) {
    record copy = r;
    iovec part{&copy, sizeof copy};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> extra{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = extra.data();
        message.msg_controllen = extra.size();
        auto* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    for (;;) {
        if (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) == sizeof copy) return true;
        if (errno != EINTR) return false;
    }
}

std::optional<received> receive_record(int socket) {
    received out;
    iovec part{&out.what, sizeof out.what};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> extra{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = extra.data();
    message.msg_controllen = extra.size();
    ssize_t n;
    do n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != sizeof out.what) return std::nullopt;
    for (auto* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
        out.fd.reset(fd);
    }
    return out;
}

}  // namespace banyan::ckpt::keeper
