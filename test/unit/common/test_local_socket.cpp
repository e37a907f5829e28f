// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/local_socket.hpp"

namespace test_local_socket {

using namespace banyan;

namespace {

struct pair_of_sockets {
    pair_of_sockets() {
        std::array<int, 2> fds{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
        ours.reset(fds[0]);
        theirs.reset(fds[1]);
    }
    unique_fd ours, theirs;
};

void send_with(int socket, const char* text, int passed) {
    const std::string_view all(text);
    REQUIRE(send_with_descriptor(socket, std::as_bytes(std::span(all)), passed).value() == all.size());
}

// A TCP connection with unsent data, whose close() takes `seconds`.
unique_fd slow_to_close(int seconds, unique_fd& other) {
    const unique_fd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    unique_fd out(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::connect(out.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    other.reset(::accept(listener.get(), nullptr, nullptr));
    std::array<char, 65536> data{};
    while (::send(out.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{1, seconds};
    REQUIRE(::setsockopt(out.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait) == 0);
    return out;
}

}  // namespace

TEST_CASE("Plain bytes are read up to where descriptors come") {
    pair_of_sockets s;
    std::array<std::byte, 64> into{};
    CHECK(receive_plain(s.ours.get(), into).error().code == errc::unavailable);
    REQUIRE(::send(s.theirs.get(), "plain", 5, 0) == 5);
    CHECK(receive_plain(s.ours.get(), into) == 5u);
    send_with(s.theirs.get(), "rights", 0);
    for (int i = 0; i < 2; ++i) CHECK(receive_plain(s.ours.get(), into).error().code == errc::denied);
    pair_of_sockets t;
    t.theirs.reset();
    CHECK(receive_plain(t.ours.get(), into) == 0u);
}

TEST_CASE("Descriptors that are left unread hold up nobody who closes") {
    pair_of_sockets s;
    unique_fd other;
    {
        const auto slow = slow_to_close(30, other);
        send_with(s.theirs.get(), "x", slow.get());
    }
    const auto begin = std::chrono::steady_clock::now();
    std::array<std::byte, 64> into{};
    CHECK(!receive_plain(s.ours.get(), into));
    close_apart(std::move(s.ours));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    // It is closed nonetheless: the other end sees it.
    pollfd gone{s.theirs.get(), 0, 0};
    CHECK(::poll(&gone, 1, 5000) == 1);
}

TEST_CASE("A listener that refuses descriptors gets none") {
    const unique_fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (!refuse_descriptors(listener.get())) return;  // a kernel before 6.16
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof(sa_family_t)) == 0);
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    const unique_fd client(::socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(::connect(client.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    char byte = 'x';
    iovec part{&byte, 1};
    msghdr packet{};
    packet.msg_iov = &part;
    packet.msg_iovlen = 1;
    packet.msg_control = control.data();
    packet.msg_controllen = control.size();
    auto* c = CMSG_FIRSTHDR(&packet);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    CHECK(::sendmsg(client.get(), &packet, 0) == -1);
}

}  // namespace test_local_socket
