// SPDX-License-Identifier: BSD-3-Clause
//
// What Prometheus gets from a checkpoint daemon, asked by HTTP as it does.
#include <map>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "cluster.hpp"

namespace test_ckptd_metrics {

using namespace ckptd_test;
namespace asio = boost::asio;
namespace ckpt = banyan::ckpt;

namespace {

std::uint16_t port_of(const cluster& c, int node) {
    const std::string before = "metrics on 127.0.0.1:";
    REQUIRE(eventually([&] { return c.log(node).find(before) != std::string::npos; }));
    const auto log = c.log(node);
    return static_cast<std::uint16_t>(std::stoul(log.substr(log.find(before) + before.size())));
}

std::string page(std::uint16_t port) {
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    socket.connect({asio::ip::make_address("127.0.0.1"), port});
    asio::write(socket, asio::buffer(std::string("GET /metrics HTTP/1.0\r\n\r\n")));
    std::string text;
    boost::system::error_code ended;
    asio::read(socket, asio::dynamic_buffer(text), ended);
    return text;
}

// name{labels} -> value; each name with one TYPE, before its numbers.
std::map<std::string, double> numbers(std::uint16_t port) {
    std::map<std::string, double> out;
    std::map<std::string, int> types;
    std::istringstream lines(page(port));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# TYPE ")) ++types[line.substr(7, line.rfind(' ') - 7)];
        if (!line.starts_with("banyan_ckpt_")) continue;
        CHECK(types[line.substr(0, line.find_first_of("{ "))] == 1);
        const auto [at, fresh] =
            out.emplace(line.substr(0, line.rfind(' ')), std::stod(line.substr(line.rfind(' '))));
        CHECK(fresh);
    }
    return out;
}

}  // namespace

TEST_CASE("the numbers of jobs, while they have memory here", "[ckptd]") {
    cluster c({2, "metrics = \"127.0.0.1:0\"\n", {}});
    const auto port = port_of(c, 1);
    CHECK(eventually([&] { return numbers(port)["banyan_ckpt_memory_limit_bytes"] > 0; }));
    CHECK(numbers(port)["banyan_ckpt_sessions{state=\"open\"}"] == 0);
    c.open(c.request(7, 2, 1, c.dir() + "/store", 1));
    c.open(c.request(8, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    c.new_step(8, 0, {1, 2});
    auto stored = start_ranks(c, 7, {1, 2}), kept = start_ranks(c, 8, {1, 2});
    all_are(ask_all(stored, "save 1"), BCK_OK);
    all_are(ask_all(stored, "wait 1 3 9000"), BCK_OK);
    all_are(ask_all(kept, "save 5"), BCK_OK);
    all_are(ask_all(kept, "wait 5 2 9000"), BCK_OK);
    CHECK(eventually([&] { return numbers(port)["banyan_ckpt_step{job=\"8\",tier=\"replicated\"}"] == 5; }));
    auto now = numbers(port);
    for (const char* tier : {"memory", "replicated", "storage"})
        CHECK(now[std::string("banyan_ckpt_step{job=\"7\",tier=\"") + tier + "\"}"] == 1);
    CHECK_FALSE(now.contains("banyan_ckpt_step{job=\"8\",tier=\"storage\"}"));
    CHECK(now["banyan_ckpt_storage_lag_steps{job=\"7\"}"] == 0);
    CHECK_FALSE(now.contains("banyan_ckpt_storage_lag_steps{job=\"8\"}"));
    CHECK(now["banyan_ckpt_sessions{state=\"open\"}"] == 2);
    CHECK(now["banyan_ckpt_memory_used_bytes"] ==
          now["banyan_ckpt_job_memory_bytes{job=\"7\"}"] + now["banyan_ckpt_job_memory_bytes{job=\"8\"}"]);
    double in_pages = 0;
    for (const char* pages : {"reserved", "transparent", "ordinary"})
        in_pages += now[std::string("banyan_ckpt_memory_pages_bytes{pages=\"") + pages + "\"}"];
    CHECK(in_pages == now["banyan_ckpt_memory_used_bytes"]);
    CHECK(now["banyan_ckpt_saves_total{job=\"7\",outcome=\"sealed\"}"] == 1);
    CHECK(now["banyan_ckpt_flushes_total{job=\"7\",outcome=\"done\"}"] == 1);
    CHECK(now["banyan_ckpt_bytes_total{job=\"7\",what=\"storage_written\"}"] >= state_bytes);
    CHECK(now["banyan_ckpt_bytes_total{job=\"8\",what=\"peer_sent\"}"] >= state_bytes);
    // Another state of a job has numbers of its own, and is no job.
    all_are(ask_all(kept, "in ema save 3"), BCK_OK);
    all_are(ask_all(kept, "in ema wait 3 2 9000"), BCK_OK);
    CHECK(eventually(
        [&] { return numbers(port)["banyan_ckpt_step{job=\"8\",state=\"ema\",tier=\"replicated\"}"] == 3; }));
    now = numbers(port);
    CHECK(now["banyan_ckpt_step{job=\"8\",tier=\"replicated\"}"] == 5);
    CHECK(now["banyan_ckpt_saves_total{job=\"8\",outcome=\"sealed\",state=\"ema\"}"] +
              now["banyan_ckpt_saves_total{job=\"8\",state=\"ema\",outcome=\"sealed\"}"] ==
          1);
    CHECK(now["banyan_ckpt_sessions{state=\"open\"}"] == 2);
    // Their memory stays for a while, then they are gone, and so are their numbers.
    REQUIRE(ckpt::session_detach(c.socket(1), 8, 5s));
    CHECK(eventually([&] { return numbers(port)["banyan_ckpt_sessions{state=\"detached\"}"] == 1; }));
    stored.clear();
    kept.clear();
    for (const auto job : {7, 8})
        REQUIRE(ckpt::session_close(c.socket(1), static_cast<std::uint64_t>(job), false, 5s));
    CHECK(eventually([&] { return page(port).find("job=") == std::string::npos; }));
}

TEST_CASE("an address that cannot be had costs the numbers alone", "[ckptd]") {
    const std::string address = GENERATE(as<std::string>(), "nowhere.invalid:9", "127.0.0.1:99999", "words");
    cluster c({1, "metrics = \"" + address + "\"\n", {}});
    CHECK(c.log(1).find("cannot serve metrics on " + address) != std::string::npos);
    c.open(c.request(7, 1, 1, "", 0));
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
}

}  // namespace test_ckptd_metrics
