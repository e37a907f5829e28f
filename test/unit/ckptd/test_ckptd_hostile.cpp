// SPDX-License-Identifier: BSD-3-Clause
//
// Peers that lie: garbage on both sockets, lengths beyond the limits, jobs of others. The daemon answers or
// hangs up, and serves the next one.
#include <cstring>
#include <random>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.hpp"
#include "common/wire.hpp"
#include "test/built.hpp"

namespace test_ckptd_hostile {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace wire = banyan::wire;

namespace {

wire::deadline soon() { return banyan::clock::now() + 3s; }

banyan::result<json> ask(const cluster& c, ckpt::message type, const json& meta) {
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    auto reply = wire::call(fd->get(), static_cast<std::uint16_t>(type), meta, soon());
    if (!reply) return std::unexpected(reply.error());
    return reply->meta;
}

banyan::unique_fd connect_tcp(const cluster& c) {
    banyan::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::bindresvport(fd.get(), nullptr);  // as root's daemons do; without the right to it any port is as good
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(c.port());
    ::inet_pton(AF_INET, c.addr(1).c_str(), &a.sin_addr);
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
    return fd;
}

// In a process of its own, as another user. Returns the exit status: 0 when every request was refused.
template <class Body>
int as_nobody(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
        ::_exit(body() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refused(const std::string& socket, ckpt::message type, const json& meta) {
    auto fd = wire::connect_unix(socket, soon());
    if (!fd) return false;
    auto reply = wire::call(fd->get(), static_cast<std::uint16_t>(type), meta, soon());
    return !reply && reply.error().code != banyan::errc::unavailable;
}

}  // namespace

TEST_CASE("other users see and change nothing", "[ckptd]") {
    if (::geteuid() != 0) return;
    cluster c({1, "", {}});
    auto r = c.request(1, 1, 1, "", 0);
    c.open(r);
    const auto socket = c.socket(1);
    CHECK(as_nobody([&] {
              r.job = 2;
              r.self = "n1";
              return !ckpt::session_open(socket, r, 3s) && !ckpt::step_open(socket, {1, 1, {"n1"}}, 3s) &&
                     !ckpt::session_detach(socket, 1, 3s) && ckpt::session_close(socket, 1, false, 3s) &&
                     !ckpt::seal_now(socket, 0, 3s) &&
                     json::parse(ckpt::status(socket, 3s).value_or("{}"))["sessions"].empty() &&
                     refused(socket, ckpt::message::attach, attach_of(1, 0, 1, 10)) &&
                     refused(socket, ckpt::message::restore, json::object());
          }) == 0);
    CHECK(c.session(1, 1)["state"] == "open");
    CHECK(c.session(1, 2).is_null());
}

TEST_CASE("wrong requests are refused with a reason", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    const auto bad = [&](ckpt::message type, const json& meta) {
        const auto reply = ask(c, type, meta);
        INFO(meta.dump());
        REQUIRE_FALSE(reply);
        CHECK_FALSE(reply.error().what.empty());
    };
    using m = ckpt::message;
    bad(m::attach, attach_of(99, 0, 1, 1));
    bad(m::attach, attach_of(1, 1, 1, 1));
    bad(m::attach, attach_of(1, 0, 2, 1));
    bad(m::attach, attach_of(1, 0, 1, 1ull << 47));
    bad(m::attach, attach_of(1, -1, 1, "many"));
    bad(m::restore, json::object());
    bad(m::finalize, json::object());
    bad(m::session_open, json::object());
    bad(m::step_open, {{"job", 1}, {"step", 1}, {"nodes", {"evil"}}});
    bad(m::step_open, {{"job", 5}, {"step", 1}, {"nodes", {"n1"}}});
    bad(m::seal_now, {{"job", 5}});
    bad(static_cast<m>(0x4444), json::object());
    CHECK(c.session(1, 1)["state"] == "open");
}

// Libraries of other releases, by hand.
TEST_CASE("a library of another release is understood, or refused by the numbers of both", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    constexpr auto us = ckpt::local_protocol;
    const auto attach = [&](const json& protocol) {
        return ask(c, ckpt::message::attach, attach_of(1, 0, 1, 8192, {{"protocol", protocol}}));
    };
    for (const json& range : {json{us.oldest, us.newest}, json{us.newest, us.newest + 7}, json{0, us.oldest},
                              json{0, us.newest + 7}}) {
        INFO(range.dump());
        const auto reply = attach(range);
        REQUIRE(reply);
        CHECK((*reply)["protocol"] == std::min(range[1].get<std::uint32_t>(), us.newest));
    }
    const auto newer = attach({us.newest + 1, us.newest + 2});
    REQUIRE_FALSE(newer);
    CHECK(newer.error().code == banyan::errc::conflict);
    CHECK(newer.error().what == fmt::format("the job's libbanyan_ckpt speaks protocol {} to {}, this node's "
                                            "daemon {}",
                                            us.newest + 1, us.newest + 2, ckpt::in_words(us)));
    CHECK(newer.error().hint.find("beside the daemon's socket") != std::string::npos);
    CHECK(newer.error().hint.find("newer banyan-ckptd") != std::string::npos);
    const auto older = attach({us.oldest - 1, us.oldest - 1});
    REQUIRE_FALSE(older);
    CHECK(older.error().what.find(fmt::format("speaks protocol {}, ", us.oldest - 1)) != std::string::npos);
    CHECK(older.error().hint.find("newer banyan-ckptd") == std::string::npos);
    auto without = attach_of(1, 0, 1, 8192);
    without.erase("protocol");
    const auto first = ask(c, ckpt::message::attach, without);
    REQUIRE_FALSE(first);
    CHECK(first.error().what.find("a protocol without a number") != std::string::npos);
    for (const json& wrong : {json{2, 1}, json{1}, json{1, 1, 1}, json(1), json("1"), json{-1, 1},
                              json{1, 1ull << 40}, json(nullptr)}) {
        INFO(wrong.dump());
        CHECK_FALSE(attach(wrong));
    }
    // Of a job that is not his, or not here, nobody learns more by it.
    CHECK(ask(c, ckpt::message::attach, attach_of(2, 0, 1, 1, {{"protocol", {9, 9}}})).error().what ==
          ask(c, ckpt::message::attach, attach_of(1, 0, 1, 1, {{"protocol", {9, 9}}})).error().what);
}

TEST_CASE("a rank's lies in its own buffer headers harm nobody", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    const json attach = attach_of(1, 0, 1, 8192);
    REQUIRE(
        wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::attach), attach, {}, soon()));
    banyan::unique_fd memory;
    const auto reply = wire::receive_frame(fd->get(), soon(), &memory);
    REQUIRE(reply);
    REQUIRE(memory);
    CHECK(::ftruncate(memory.get(), 0) != 0);
    const std::string garbage(4096, '\x5a');
    for (std::uint64_t buffer = 0; buffer < 12; ++buffer) {
        REQUIRE(::pwrite(memory.get(), garbage.data(), garbage.size(), 0) == 4096);
        REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::sealed),
                                 {{"buffer", buffer}}, {}, soon()));
    }
    REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::sealed), {{"buffer", "x"}},
                             {}, soon()));
    CHECK(wire::call(fd->get(), static_cast<std::uint16_t>(ckpt::message::status), json::object(), soon()));
    CHECK(c.counter(1, 1, "seals") == 0);
}

TEST_CASE("memory in parts is passed to its rank alone", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    {
        auto ranks = start_ranks(c, 1, {1});
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "grow 1000000"), BCK_OK);
        all_are(ask_all(ranks, "save 2"), BCK_OK);
        all_are(ask_all(ranks, "wait 2 1 5000"), BCK_OK);
    }
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    const auto ask = [&](ckpt::message type, const json& meta, banyan::unique_fd* memory) {
        REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(type), meta, {}, soon()));
        const auto reply = wire::receive_frame(fd->get(), soon(), memory);
        REQUIRE(reply);
        return reply->meta;
    };
    const auto size_of = [](const banyan::unique_fd& memory) {
        struct stat st {};
        REQUIRE(::fstat(memory.get(), &st) == 0);
        return static_cast<std::uint64_t>(st.st_size);
    };
    banyan::unique_fd first, second;
    CHECK(ask(ckpt::message::attach_part, {{"part", 0}}, &first).contains("error"));
    const auto both = ask(ckpt::message::attach, attach_of(1, 0, 1, 8192), &first);
    REQUIRE(both["parts"].size() == 2);
    CHECK(both["parts"][0].get<std::uint64_t>() + both["parts"][1].get<std::uint64_t>() ==
          both["buffer_bytes"]);
    for (const auto& part : {json(2), json(-1), json("1"), json(nullptr)})
        CHECK(ask(ckpt::message::attach_part, {{"part", part}}, &second).contains("error"));
    CHECK_FALSE(second);
    CHECK(ask(ckpt::message::attach_part, {{"part", 1}}, &second) == json{{"part", 1}});
    REQUIRE(second);
    CHECK(size_of(second) == 3 * both["parts"][1].get<std::uint64_t>());
    CHECK(::ftruncate(second.get(), 0) != 0);
    CHECK(::ftruncate(second.get(), 1 << 30) != 0);
    CHECK(c.session(1, 1)["committed"]["step"] == 2);
}

TEST_CASE("garbage on the sockets ends the connection, never the daemon", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    std::minstd_rand random(4711);
    const auto good = [&](std::uint16_t type, const std::string& meta) {
        const auto head = wire::encode_header({type, static_cast<std::uint32_t>(meta.size()), 0});
        std::string out(reinterpret_cast<const char*>(head.data()), head.size());
        return out + meta;
    };
    const auto long_meta = wire::encode_header({0x10, 0x7fffffff, 0});
    const auto long_body = wire::encode_header({0x10, 2, 0x7fffffff});
    for (int i = 0; i < 400; ++i) {
        std::string bytes;
        switch (i % 6) {
            case 0:
                bytes.assign(reinterpret_cast<const char*>(long_meta.data()), long_meta.size());
                break;
            case 1:
                bytes.assign(reinterpret_cast<const char*>(long_body.data()), long_body.size());
                break;
            case 2:
                bytes = good(static_cast<std::uint16_t>(random() % 0x120), "{\"job\":77,\"generation\":99}");
                break;
            case 3:
                bytes = good(0x10, std::string(5000, '['));
                break;
            case 4:
                bytes = good(static_cast<std::uint16_t>(0x10 + random() % 12),
                             R"({"job":77,"nodes":[[]],"step":{},"rank":null})");
                break;
            default:
                bytes.resize(random() % 300);
        }
        for (int k = 0; i % 6 >= 2 && k < i % 5; ++k)
            if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
        banyan::unique_fd fd;
        if (i % 2 == 0) {
            auto local = wire::connect_unix(c.socket(1), soon());
            REQUIRE(local);
            fd = std::move(*local);
        } else {
            fd = connect_tcp(c);
        }
        if (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) continue;
    }
    REQUIRE(c.status(1).is_object());
    CHECK(c.session(1, 1)["world"] == 1);
    rank_process rank(c, 1, 1, 0, 1, 100'000);
    CHECK(rank.ask("save 1") == BCK_OK);
    CHECK(rank.ask("wait 1 1 5000") == BCK_OK);
}

TEST_CASE("a second daemon on the same socket is an error, a dead one's socket is replaced", "[ckptd]") {
    cluster c({1, "", {}});
    const std::string again = banyan::testing::built("banyan-ckptd") + " --config " + c.dir() +
                              "/banyan.conf --node n1 --bind 127.0.2.250 >" + c.dir() + "/second.out 2>&1";
    CHECK(std::system(again.c_str()) != 0);
    CHECK(c.status(1).is_object());
    c.kill(1, SIGKILL);
    CHECK(c.start(1));
}

}  // namespace test_ckptd_hostile
