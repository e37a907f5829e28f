// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/fd.hpp"
#include "doctor/reach.hpp"

namespace test_reach {

using namespace banyan::doctor;
using std::chrono::milliseconds;

namespace {

/// A socket on a loopback port of its own; `listening` false: bound only, so that nobody else gets the port.
std::pair<banyan::unique_fd, std::uint16_t> port(bool listening, int backlog = 16) {
    banyan::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    if (listening) REQUIRE(::listen(fd.get(), backlog) == 0);
    return {std::move(fd), ntohs(at.sin_port)};
}

}  // namespace

TEST_CASE("an open, a closed and an unknown host are told apart", "[doctor]") {
    const auto [open, open_port] = port(true);
    const auto [closed, closed_port] = port(false);
    const auto answers = try_ports({{"a", "127.0.0.1", open_port},
                                    {"b", "127.0.0.1", closed_port},
                                    {"c", "no-such-host.invalid", open_port},
                                    {"d", "localhost", open_port}},
                                   milliseconds(2000));
    CHECK(answers[0] == reach::open);
    CHECK(answers[1] == reach::closed);
    CHECK(answers[2] == reach::unresolved);
    CHECK((answers[3] == reach::open || answers[3] == reach::closed));  // localhost may be ::1 alone
}

TEST_CASE("a host that drops packets is silent, and holds up no other for long", "[doctor]") {
    const auto [full, full_port] = port(true, 0);
    // The queue of a listener that never accepts: what does not fit is dropped.
    std::vector<target> targets(8, {"full", "127.0.0.1", full_port});
    const auto answers = try_ports(targets, milliseconds(200));
    CHECK(std::count(answers.begin(), answers.end(), reach::silent) > 0);
}

TEST_CASE("a thousand hosts are tried, none is left out", "[doctor]") {
    const auto [open, open_port] = port(true, 4096);
    const auto [closed, closed_port] = port(false);
    std::vector<target> targets;
    for (int i = 0; i < 1000; ++i) targets.push_back({"n", "127.0.0.1", i % 2 ? open_port : closed_port});
    const auto answers = try_ports(targets, milliseconds(10000));
    REQUIRE(answers.size() == 1000);
    for (std::size_t i = 0; i < answers.size(); ++i)
        CHECK(answers[i] == (i % 2 ? reach::open : reach::closed));
    CHECK(try_ports({}, milliseconds(1)).empty());
}

}  // namespace test_reach
