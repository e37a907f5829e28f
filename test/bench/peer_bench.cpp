// SPDX-License-Identifier: BSD-3-Clause
//
// What it costs that nobody else can speak on a connection between daemons: chunks as ckptd sends them to the
// node that keeps the copies, over a protected channel and over the same TCP connection without, in turn;
// medians. Both ends have a thread of their own, and one for the arithmetic, as the daemons have.
//     peer_bench [--json FILE] [--mib N] [--runs N]
#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>

#include "common/peer/channel.hpp"
#include "test/bench/figures.hpp"

namespace {

using namespace banyan;
using asio::ip::tcp;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t chunk = 4u << 20;

enum mode { plain, authenticated, encrypted, modes };

/// One end: its loop, its thread for arithmetic, its socket.
struct end {
    asio::io_context io{1};
    asio::thread_pool pool{1};
    tcp::socket socket{io};
};

double seconds(clock_type::time_point from) {
    return std::chrono::duration<double>(clock_type::now() - from).count();
}

template <class Send, class Receive>
double time_of(end& a, end& b, std::size_t chunks, Send send, Receive receive) {
    const auto start = clock_type::now();
    const auto bug = [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
    };
    asio::co_spawn(
        a.io,
        [&]() -> task<void> {
            for (std::size_t i = 0; i < chunks; ++i) co_await send();
        },
        bug);
    asio::co_spawn(
        b.io,
        [&]() -> task<void> {
            for (std::size_t i = 0; i < chunks; ++i) co_await receive();
        },
        bug);
    std::thread sender([&] { a.io.run(); });
    b.io.run();
    sender.join();
    return seconds(start);
}

double transfer(mode how, std::size_t chunks, const std::vector<std::byte>& from,
                std::vector<std::byte>& into) {
    end a, b;
    tcp::acceptor listener(b.io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    a.socket.connect(listener.local_endpoint());
    listener.accept(b.socket);
    a.socket.set_option(tcp::no_delay(true));
    if (how == plain)
        return time_of(
            a, b, chunks,
            [&]() -> task<void> {
                auto meta = nlohmann::json::object();
                co_await wire::write_frame(a.socket, 1, std::move(meta), from);
            },
            [&]() -> task<void> {
                co_await wire::read_head(b.socket, wire::max_meta);
                co_await wire::read_bytes(b.socket, into);
            });
    const auto ours = peer::key_pair::make().value(), theirs = peer::key_pair::make().value();
    const auto keys = ours.agree(theirs.public_key(), "bench").value();
    peer::channel out(std::move(a.socket), {keys, true, how == encrypted, "b", &a.pool});
    peer::channel in(std::move(b.socket), {keys, false, how == encrypted, "a", &b.pool});
    return time_of(
        a, b, chunks,
        [&]() -> task<void> {
            auto meta = nlohmann::json::object();
            co_await out.write_frame(1, std::move(meta), from);
        },
        [&]() -> task<void> {
            co_await in.read_head();
            const auto whole = co_await in.read_body(into);
            if (!whole) throw std::runtime_error(whole.error().text());
        });
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::size_t mib = 512, runs = 9;
    CLI::App app("The cost of protected connections between daemons.");
    app.add_option("--json", json, "write the figures there instead of printing a table");
    app.add_option("--mib", mib, "how much a run sends")->check(CLI::Range(8, 65536));
    app.add_option("--runs", runs, "runs of each kind")->check(CLI::Range(1, 1000));
    CLI11_PARSE(app, argc, argv);
    const std::vector<std::byte> from(chunk, std::byte{0x5a});
    std::vector<std::byte> into(chunk);
    const auto chunks = mib * (1u << 20) / chunk;
    std::array<std::vector<double>, modes> taken;
    for (std::size_t run = 0; run < runs; ++run)
        for (const auto how : {plain, authenticated, encrypted})
            taken[how].push_back(transfer(how, chunks, from, into));
    bench::figures figures;
    const auto base = median(taken[plain]);
    figures.add("plain TCP on loopback", static_cast<double>(mib) / 1024 / base, "GiB/s", "-");
    figures.add("time with authentication", median(taken[authenticated]) / base, "x", "plain TCP");
    figures.add("time with encryption", median(taken[encrypted]) / base, "x", "plain TCP");
    return figures.finish(json);
}
