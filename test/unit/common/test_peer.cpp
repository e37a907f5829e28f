// SPDX-License-Identifier: BSD-3-Clause
//
// What protects a connection between daemons, part by part: keys, the channel's frames, who may connect, what
// is stated. The whole handshake runs between real daemons in test/hostile.
#include <array>
#include <set>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "common/crc32c.hpp"
#include "common/peer/admission.hpp"
#include "common/peer/channel.hpp"
#include "common/peer/keys.hpp"
#include "common/peer/statement.hpp"

namespace test_peer {

using namespace banyan;
using asio::ip::tcp;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

peer::channel_keys some_keys() {
    const auto a = peer::key_pair::make().value(), b = peer::key_pair::make().value();
    return a.agree(b.public_key(), "x").value();
}

tcp::endpoint at(const std::string& address, std::uint16_t port) {
    return {asio::ip::make_address(address), port};
}

/// Two ends of a TCP connection.
struct tcp_pair {
    explicit tcp_pair(asio::io_context& io) : a(io), b(io) {
        tcp::acceptor listener(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
        a.connect(listener.local_endpoint());
        listener.accept(b);
    }
    tcp::socket a, b;
};

template <class T>
T run(asio::io_context& io, task<T> work) {
    std::optional<T> out;
    asio::co_spawn(
        io, [&]() -> task<void> { out.emplace(co_await std::move(work)); },
        [](std::exception_ptr e) { CHECK_FALSE(e); });
    io.restart();
    io.run();
    return std::move(*out);
}

/// What a caller puts on the wire for one frame.
std::vector<std::byte> frame_bytes(asio::io_context& io, const peer::channel_keys& keys, bool encrypt,
                                   int frames = 1) {
    tcp_pair wire(io);
    std::size_t total = 0;
    peer::channel out(std::move(wire.a), {keys, true, encrypt, "n1", nullptr});
    const std::string body(1000, 'B');
    for (int i = 0; i < frames; ++i) {
        nlohmann::json meta = nlohmann::json::object();
        meta["secret"] = "tulip" + std::to_string(i);
        REQUIRE(run(io, out.write_frame(7, std::move(meta), bytes_of(body))));
    }
    total = wire.b.available();
    std::vector<std::byte> got(total);
    asio::read(wire.b, asio::buffer(got));
    return got;
}

/// Reads one frame with a body of 1,000 bytes out of `bytes`; the metadata, or nothing when it is refused.
std::optional<nlohmann::json> received(asio::io_context& io, const peer::channel_keys& keys, bool encrypt,
                                       const std::vector<std::byte>& bytes, std::size_t frames = 1) {
    tcp_pair wire(io);
    asio::write(wire.a, asio::buffer(bytes));
    wire.a.shutdown(tcp::socket::shutdown_send);
    peer::channel in(std::move(wire.b), {keys, false, encrypt, "n1", nullptr});
    nlohmann::json last;
    for (std::size_t i = 0; i < frames; ++i) {
        auto head = run(io, in.read_head());
        if (!head || head->first.body_bytes != 1000) return std::nullopt;
        std::vector<std::byte> body(1000);
        if (!run(io, in.read_body(body))) return std::nullopt;
        if (body != std::vector<std::byte>(1000, std::byte{'B'})) return std::nullopt;
        last = head->second;
    }
    return last;
}

}  // namespace

TEST_CASE("both ends of an agreement have the same keys, and nobody else", "[peer]") {
    const auto a = peer::key_pair::make().value(), b = peer::key_pair::make().value(),
               c = peer::key_pair::make().value();
    const auto ab = a.agree(b.public_key(), "hello").value(), ba = b.agree(a.public_key(), "hello").value();
    CHECK(ab.from_caller == ba.from_caller);
    CHECK(ab.from_listener == ba.from_listener);
    CHECK(ab.from_caller != ab.from_listener);
    CHECK(a.agree(b.public_key(), "hello!").value().from_caller != ab.from_caller);
    CHECK(c.agree(b.public_key(), "hello").value().from_caller != ab.from_caller);
    // A public key of all zeros has the same secret with everybody.
    CHECK_FALSE(a.agree(peer::key{}, "hello"));
    CHECK(peer::from_hex(peer::to_hex(a.public_key())).value() == a.public_key());
    CHECK_FALSE(peer::from_hex("12"));
    CHECK_FALSE(peer::from_hex(std::string(64, 'g')));
}

TEST_CASE("a sealed message opens once, in its place, unchanged", "[peer]") {
    const auto keys = some_keys();
    for (const bool encrypt : {false, true}) {
        peer::frame_cipher out(keys.from_caller);
        std::string first = "first message", second = "second message";
        auto cover = [&](std::string& text) {
            auto view = std::as_writable_bytes(std::span(text));
            return out.seal(bytes_of("head"), view, encrypt ? view.data() : nullptr);
        };
        const auto t1 = cover(first), t2 = cover(second);
        CHECK((first == "first message") == !encrypt);
        const auto opens = [&](peer::frame_cipher& in, std::string text, const peer::tag& t,
                               const std::string& head = "head") {
            return in.open(bytes_of(head), std::as_writable_bytes(std::span(text)), t, encrypt);
        };
        const auto fresh = [&] { return peer::frame_cipher(keys.from_caller); };
        auto in = fresh();
        CHECK(opens(in, first, t1));
        CHECK_FALSE(opens(in, first, t1));  // again
        auto in2 = fresh();
        CHECK_FALSE(opens(in2, second, t2));  // out of order
        auto in3 = fresh();
        CHECK_FALSE(opens(in3, first, t1, "HEAD"));
        auto in4 = fresh();
        auto changed = first;
        changed[3] = static_cast<char>(changed[3] ^ 1);
        CHECK_FALSE(opens(in4, changed, t1));
        peer::frame_cipher other(keys.from_listener);  // reflected
        CHECK_FALSE(opens(other, first, t1));
    }
}

TEST_CASE("a body of any length arrives with its checksum, looked at by other threads or not", "[peer]") {
    const auto keys = some_keys();
    asio::thread_pool pool(2);
    for (const bool encrypt : {false, true})
        for (auto* const helpers : {static_cast<asio::thread_pool*>(nullptr), &pool})
            for (const std::size_t bytes :
                 {1u, 65'535u, 262'143u, 262'144u, 262'145u, 524'287u, 524'289u, 1'048'576u, 4'194'304u}) {
                INFO(bytes << " bytes, encrypted " << encrypt << ", threads " << (helpers != nullptr));
                asio::io_context io;
                tcp_pair wire(io);
                peer::channel out(std::move(wire.a), {keys, true, encrypt, "n1", helpers});
                peer::channel in(std::move(wire.b), {keys, false, encrypt, "n2", helpers});
                std::vector<std::byte> body(bytes), got(bytes);
                for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<std::byte>(i * 131 + i / 251);
                const auto sent = body;
                std::uint32_t crc = 7;
                bool read = false;
                asio::co_spawn(
                    io,
                    [&]() -> task<void> {
                        for (int i = 0; i < 2; ++i) {
                            auto meta = nlohmann::json::object();
                            const auto done = co_await out.write_frame(7, std::move(meta), body);
                            CHECK(done);
                        }
                    },
                    [](std::exception_ptr e) { CHECK_FALSE(e); });
                read = run(io, [](auto& from, auto into, auto* sum) -> task<bool> {
                    for (int i = 0; i < 2; ++i) {
                        const auto head = co_await from.read_head();
                        if (!head || head->first.body_bytes != into.size()) co_return false;
                        const auto whole = co_await from.read_body(into, sum);
                        if (!whole) co_return false;
                    }
                    co_return true;
                }(in, std::span(got), &crc));
                CHECK(read);
                CHECK(got == sent);
                CHECK(body == sent);  // encryption leaves the sender's memory alone
                CHECK(crc == crc32c(sent));
            }
}

TEST_CASE("a large body that comes in bits is read to its end, and what follows it at once", "[peer]") {
    const auto keys = some_keys();
    const bool encrypt = GENERATE(false, true);
    const std::size_t bytes = GENERATE(262'143u, 262'145u, 524'289u, 800'001u);
    CAPTURE(encrypt, bytes);
    asio::io_context io;
    tcp_pair first(io), second(io);
    const std::vector<std::byte> body(bytes, std::byte{'B'});
    const std::array bodies{std::span(body), std::span(body).first(10)};
    std::vector<std::byte> wire(bytes + 4096);
    {
        peer::channel out(std::move(first.a), {keys, true, encrypt, "n1", nullptr});
        std::jthread sends([&] {
            asio::co_spawn(
                io,
                [&]() -> task<void> {
                    for (const auto b : bodies) {
                        auto meta = nlohmann::json::object();
                        const auto done = co_await out.write_frame(7, std::move(meta), b);
                        CHECK(done);
                    }
                    out.close();
                },
                [](std::exception_ptr e) { CHECK_FALSE(e); });
            io.run();
        });
        boost::system::error_code end;
        first.b.native_non_blocking(false);
        wire.resize(asio::read(first.b, asio::buffer(wire), end));
    }
    io.restart();
    peer::channel in(std::move(second.b), {keys, false, encrypt, "n2", nullptr});
    // The connection stays open: nothing but what has come wakes the reader.
    std::jthread feeder([&] {
        for (std::size_t at = 0, bit = 1; at < wire.size(); at += bit, bit = bit * 3 % 70'001 + 1) {
            bit = std::min(bit, wire.size() - at);
            asio::write(second.a, asio::buffer(wire.data() + at, bit));
            std::this_thread::sleep_for(std::chrono::microseconds(bit % 7 == 0 ? 3000 : 100));
        }
    });
    asio::steady_timer patience(io, std::chrono::seconds(20));
    patience.async_wait([&](const boost::system::error_code& ec) {
        if (!ec) in.close();
    });
    // Not where a line of the cache begins.
    std::vector<std::byte> room(bytes + 13, std::byte{'-'});
    const auto read = run(io, [&]() -> task<int> {
        int whole = 0;
        std::vector<std::byte> small(10);
        const std::array places{std::span(room).subspan(5, bytes), std::span(small)};
        for (std::size_t i = 0; i < places.size(); ++i) {
            const auto head = co_await in.read_head();
            if (!head) break;
            std::uint32_t crc = 0;
            const auto done = co_await in.read_body(places[i], &crc, true);
            if (!done || crc != crc32c(bodies[i])) break;
            ++whole;
        }
        patience.cancel();
        co_return whole;
    }());
    CHECK(read == 2);
    CHECK(std::equal(body.begin(), body.end(), room.begin() + 5));
    CHECK(std::count(room.begin(), room.end(), std::byte{'-'}) == 13);  // and nothing beside it
}

TEST_CASE("a body that others write to meanwhile harms itself and not the connection", "[peer]") {
    constexpr std::size_t bytes = 4u << 20;
    const auto keys = some_keys();
    asio::thread_pool pool(2);
    const bool encrypt = GENERATE(false, true), leaving = GENERATE(true, false);
    CAPTURE(encrypt, leaving);
    // As a rank and its daemon have a buffer: the same memory at two addresses.
    const int file = ::memfd_create("shared", MFD_CLOEXEC);
    REQUIRE(::ftruncate(file, bytes) == 0);
    const auto map = [&] {
        void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        REQUIRE(at != MAP_FAILED);
        return std::span(static_cast<std::byte*>(at), bytes);
    };
    const auto ours = map(), theirs = map();
    const std::vector<std::byte> quiet(bytes, std::byte{'Q'});
    std::vector<std::byte> got(bytes);
    asio::io_context io;
    tcp_pair wire(io);
    peer::channel out(std::move(wire.a), {keys, true, encrypt, "n1", &pool});
    peer::channel in(std::move(wire.b), {keys, false, encrypt, "n2", &pool});
    constexpr int frames = 10;
    bool sent = true;
    {
        std::jthread hostile([&](const std::stop_token& over) {
            for (std::uint64_t n = 1; !over.stop_requested(); ++n)
                for (std::size_t i = n % 64; i < bytes; i += 64)
                    *static_cast<volatile unsigned char*>(static_cast<void*>(&theirs[i])) =
                        static_cast<unsigned char>(n);
        });
        asio::co_spawn(
            io,
            [&]() -> task<void> {
                for (int i = 0; sent && i <= frames; ++i) {
                    auto meta = nlohmann::json::object();
                    const bool shared = leaving && i < frames;
                    const auto done = co_await out.write_frame(
                        7, std::move(meta), shared ? std::span<const std::byte>(ours) : quiet);
                    sent = done.has_value();
                }
            },
            [](std::exception_ptr e) { CHECK_FALSE(e); });
        const auto read = run(io, [&]() -> task<int> {
            int whole = 0;
            for (; whole <= frames; ++whole) {
                const bool shared = !leaving && whole < frames;
                const auto head = co_await in.read_head();
                if (!head) break;
                std::uint32_t crc = 0;
                const auto done = co_await in.read_body(shared ? ours : std::span(got), &crc, shared);
                if (!done) break;
                if (!leaving) CHECK(crc == crc32c(quiet));
            }
            co_return whole;
        }());
        CHECK(read == frames + 1);
    }
    CHECK(got == quiet);
    ::munmap(ours.data(), bytes);
    ::munmap(theirs.data(), bytes);
    ::close(file);
}

TEST_CASE("what is changed, repeated, moved or cut on the wire is not read", "[peer]") {
    asio::io_context io;
    const auto keys = some_keys();
    for (const bool encrypt : {false, true}) {
        const auto two = frame_bytes(io, keys, encrypt, 2);
        const std::vector<std::byte> one(two.begin(),
                                         two.begin() + static_cast<std::ptrdiff_t>(two.size() / 2));
        REQUIRE(received(io, keys, encrypt, one).value()["secret"] == "tulip0");
        REQUIRE(received(io, keys, encrypt, two, 2).value()["secret"] == "tulip1");
        const std::string_view text(reinterpret_cast<const char*>(two.data()), two.size());
        CHECK((text.find("tulip") == std::string_view::npos) == encrypt);
        CHECK((text.find("BBBB") == std::string_view::npos) == encrypt);
        // Every single byte counts: header, metadata, tags, body.
        for (std::size_t i = 0; i < one.size(); i += i < 100 ? 1 : 53) {
            auto changed = one;
            changed[i] ^= std::byte{1};
            INFO("byte " << i);
            CHECK_FALSE(received(io, keys, encrypt, changed));
        }
        auto twice = one;
        twice.insert(twice.end(), one.begin(), one.end());
        CHECK_FALSE(received(io, keys, encrypt, twice, 2));
        const std::vector<std::byte> second(two.begin() + static_cast<std::ptrdiff_t>(one.size()), two.end());
        CHECK_FALSE(received(io, keys, encrypt, second));
        CHECK_FALSE(received(io, keys, encrypt, {one.begin(), one.end() - 1}));
        CHECK_FALSE(received(io, some_keys(), encrypt, one));
        CHECK_FALSE(received(io, keys, !encrypt, one));
    }
}

TEST_CASE("strangers share few places, and proven peers are not among them", "[peer]") {
    const auto gate = std::make_shared<peer::admission>(
        peer::admission_limits{.waiting = 4, .waiting_per_address = 2, .proven = 3});
    std::set<int> closed;
    const auto enter = [&](const std::string& address, int number) {
        return gate->enter(at(address, 700), [&closed, number] { closed.insert(number); });
    };
    auto a = enter("10.0.0.1", 1), b = enter("10.0.0.1", 2);
    CHECK(closed.empty());
    auto c = enter("10.0.0.1", 3);  // of one address: its own oldest goes
    CHECK(closed == std::set{1});
    a.reset();
    auto d = enter("10.0.0.2", 4), e = enter("10.0.0.3", 5);
    CHECK(closed == std::set{1});
    auto f = enter("10.0.0.4", 6);  // all places taken: the longest waiting goes
    CHECK(closed == std::set{1, 2});
    b.reset();
    CHECK(gate->waiting() == 4);
    CHECK(c->prove());
    CHECK(d->prove());
    CHECK(gate->waiting() == 2);
    CHECK(gate->proven() == 2);
    CHECK(e->prove());
    CHECK_FALSE(f->prove());
    e.reset();
    CHECK(f->prove());
    c.reset();
    d.reset();
    f.reset();
    CHECK(gate->proven() == 0);
    CHECK(gate->waiting() == 0);
}

TEST_CASE("those told to leave count until they have left", "[peer]") {
    const auto gate = std::make_shared<peer::admission>(
        peer::admission_limits{.waiting = 4, .waiting_per_address = 2, .proven = 3});
    std::vector<std::unique_ptr<peer::admission::place>> stubborn;
    for (int i = 0; i < 100; ++i)
        if (auto p = gate->enter(at("10.0.0.1", 700), [] {})) stubborn.push_back(std::move(p));
    CHECK(stubborn.size() == 4);
    CHECK(gate->enter(at("10.0.0.2", 700), [] {}));
}

TEST_CASE("an IPv6 network is one stranger, an IPv4 address in IPv6 clothes itself", "[peer]") {
    const auto gate = std::make_shared<peer::admission>(
        peer::admission_limits{.waiting = 100, .waiting_per_address = 1, .proven = 3});
    int closed = 0;
    const auto enter = [&](const std::string& address) {
        return gate->enter(at(address, 700), [&] { ++closed; });
    };
    const auto a = enter("2001:db8::1"), b = enter("2001:db8::ffff:2");
    CHECK(closed == 1);
    const auto c = enter("2001:db8:0:1::1");
    CHECK(closed == 1);
    const auto d = enter("10.0.0.1"), e = enter("::ffff:10.0.0.1");
    CHECK(closed == 2);
}

TEST_CASE("where daemons are root, a port that any user may take is none of theirs", "[peer]") {
    const auto gate = std::make_shared<peer::admission>(peer::admission_limits{.reserved_port_only = true});
    CHECK_FALSE(gate->enter(at("10.0.0.1", 1024), [] {}));
    CHECK_FALSE(gate->enter(at("10.0.0.1", 65535), [] {}));
    CHECK(gate->enter(at("10.0.0.1", 1023), [] {}));
}

TEST_CASE("what two ends state differs in a way that is said", "[peer]") {
    const peer::statement ours{"ckptd", "n1", "n2", "n2", "10.0.0.1:700", "10.0.0.2:571", "aa", "bb", false};
    CHECK(ours.text(true) != ours.text(false));
    const auto said = [&](auto change) {
        auto theirs = ours;
        change(theirs);
        CHECK(theirs.text(true) != ours.text(true));
        return ours.difference(theirs.text(true), true).text();
    };
    CHECK(said([](auto& s) { s.caller_at = "10.0.0.9:700"; }).find("10.0.0.9:700") != std::string::npos);
    CHECK(said([](auto& s) { s.wanted = "n3"; }).find("\"n3\"") != std::string::npos);
    CHECK(said([](auto& s) { s.caller_key = "cc"; }).find("another connection") != std::string::npos);
    CHECK(said([](auto& s) { s.encrypt = true; }).find("another connection") != std::string::npos);
    CHECK(ours.difference("\xff garbage", true).text().find("something else") != std::string::npos);
    CHECK(ours.difference(ours.text(false), true).text().find("listener") != std::string::npos);
}

TEST_CASE("addresses read alike at both ends", "[peer]") {
    CHECK(peer::to_text(at("10.0.0.1", 571)) == "10.0.0.1:571");
    CHECK(peer::to_text(at("::ffff:10.0.0.1", 571)) == "10.0.0.1:571");
    CHECK(peer::to_text(at("fe80::1%1", 571)) == "[fe80::1]:571");
    CHECK(peer::check_node_name("gpu-01.rack_2"));
    for (const auto* bad : {"", "n 1", "n\n1", "n1\x1b[2J", "n/1"}) CHECK_FALSE(peer::check_node_name(bad));
    CHECK_FALSE(peer::check_node_name(std::string(300, 'n')));
}

}  // namespace test_peer
