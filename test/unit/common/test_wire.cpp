// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/socket.h>

#include "common/local_socket.hpp"
#include "common/wire.hpp"
#include "common/wire_async.hpp"

namespace test_wire {

using namespace banyan;

namespace {

struct socket_pair {
    unique_fd a, b;
    socket_pair() {
        int fds[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        a.reset(fds[0]);
        b.reset(fds[1]);
    }
};

wire::deadline soon() { return banyan::clock::now() + std::chrono::seconds(5); }

}  // namespace

TEST_CASE("a frame arrives as it was sent, with its descriptor", "[common]") {
    socket_pair pair;
    int pipe_fds[2];
    REQUIRE(::pipe(pipe_fds) == 0);
    unique_fd in(pipe_fds[0]), out(pipe_fds[1]);
    const std::string meta = R"({"k":"v"})";
    const auto head = wire::encode_header({7, static_cast<std::uint32_t>(meta.size()), 0});
    REQUIRE(send_with_descriptor(pair.a.get(), head, out.get()).value() == head.size());
    REQUIRE(::send(pair.a.get(), meta.data(), meta.size(), 0) == static_cast<ssize_t>(meta.size()));
    unique_fd passed;
    const auto frame = wire::receive_frame(pair.b.get(), soon(), &passed).value();
    CHECK(frame.type == 7);
    CHECK(frame.meta["k"] == "v");
    REQUIRE(passed);
    REQUIRE(::write(passed.get(), "x", 1) == 1);
    char c = 0;
    REQUIRE(::read(in.get(), &c, 1) == 1);
    CHECK(c == 'x');
}

TEST_CASE("garbage, foreign versions and oversized lengths end the connection", "[common]") {
    auto bytes = wire::encode_header({1, 2, 3});
    CHECK(wire::decode_header(bytes).value().body_bytes == 3);
    auto wrong = bytes;
    wrong[0] = std::byte{'x'};
    CHECK_FALSE(wire::decode_header(wrong));
    wrong = bytes;
    wrong[4] = std::byte{9};
    CHECK(wire::decode_header(wrong).error().what.find("version 9") != std::string::npos);
    wrong = bytes;
    wrong[11] = std::byte{0xff};
    CHECK_FALSE(wire::decode_header(wrong));
}

TEST_CASE("metadata that is no object, too deep or cut is refused", "[common]") {
    const auto decode = [](const std::string& text) {
        return wire::decode_meta(std::as_bytes(std::span(text)));
    };
    CHECK(decode("{}"));
    CHECK(decode("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[\"}"));
    CHECK_FALSE(decode("[]"));
    CHECK_FALSE(decode("{\"a\""));
    CHECK_FALSE(decode(""));
    CHECK_FALSE(decode("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"));
}

TEST_CASE("a peer that goes away or stays silent is an error, not a hang", "[common]") {
    socket_pair pair;
    CHECK(wire::receive_frame(pair.a.get(), banyan::clock::now() + std::chrono::milliseconds(20))
              .error()
              .code == errc::unavailable);
    pair.b.reset();
    CHECK_FALSE(wire::receive_frame(pair.a.get(), soon()));
    CHECK_FALSE(wire::send_frame(pair.a.get(), 1, nlohmann::json::object(), {}, soon()));
}

TEST_CASE("coroutines speak the same framing", "[common]") {
    asio::io_context context;
    asio::local::stream_protocol::socket a(context), b(context);
    asio::local::connect_pair(a, b);
    std::vector<std::byte> body(100'000, std::byte{42});
    asio::co_spawn(
        context,
        [&]() -> task<void> {
            nlohmann::json meta{{"n", 1}};
            const auto sent = co_await wire::write_frame(a, 3, std::move(meta), body);
            CHECK(sent);
        },
        [](std::exception_ptr e) { CHECK_FALSE(e); });
    bool done = false;
    asio::co_spawn(
        context,
        [&]() -> task<void> {
            const auto frame = co_await wire::read_frame(b, wire::max_meta, wire::max_body);
            done = frame && frame->type == 3 && frame->meta["n"] == 1 && frame->body == body;
        },
        [](std::exception_ptr e) { CHECK_FALSE(e); });
    context.run();
    CHECK(done);
}

}  // namespace test_wire
