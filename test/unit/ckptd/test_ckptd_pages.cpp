// SPDX-License-Identifier: BSD-3-Clause
//
// Daemons and ranks whose memory lies in huge pages: what is saved there is the same in every tier, also
// after the daemon was killed, after the state grew, and where there are fewer pages than memory.
#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckptd/buffers/pages.hpp"
#include "cluster.hpp"
#include "common/wire.hpp"
#include "huge_pages.hpp"

namespace test_ckptd_pages {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace wire = banyan::wire;

namespace {

constexpr std::size_t large = (30u << 20) - (64u << 10);  // with its table just below 15 huge pages
constexpr std::uint64_t of_rank = 46, of_copy = 15;       // pages

bool says(const cluster& c, int node, const std::string& what) {
    return eventually([&] { return c.log(node).find(what) != std::string::npos; });
}

std::uint64_t used_by_all(const cluster& c) {
    std::uint64_t sum = 0;
    for (const int node : {1, 2}) sum += c.status(node)["memory_used"].get<std::uint64_t>();
    return sum;
}

void save(std::vector<rank_process>& ranks, int step, int level = 2) {
    all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
    all_are(ask_all(ranks, fmt::format("wait {} {} 20000", step, level)), BCK_OK);
}

void kill_below_keeper(const cluster& c, int node) {
    const auto pid = c.status(node)["pid"].get<pid_t>();
    REQUIRE(pid != c.pid(node));
    ::kill(pid, SIGKILL);
    CHECK(eventually([&] {
        const auto now = c.status(node);
        return now.is_object() && now["pid"] != pid;
    }));
}

}  // namespace

TEST_CASE("ranks save into reserved huge pages, and it is the same in every tier", "[ckptd]") {
    const huge_page_pool pool(2 * (of_rank + 4 * of_copy));
    if (!pool) return;
    cluster c({2, "", {"--keeper"}});
    const auto storage = c.dir() + "/store";
    c.open(c.request(1, 2, 1, storage, 4));
    auto ranks = start_ranks(c, 1, {1, 2}, 1, large);
    for (int step = 1; step <= 4; ++step) save(ranks, step, step == 4 ? 3 : 2);
    for (const int node : {1, 2}) CHECK(says(c, node, "lie in reserved huge pages"));
    CHECK(pool.free() == 2 * (of_rank + 4 * of_copy) - used_by_all(c) / (2u << 20));
    CHECK(c.status(1)["memory_pages"]["reserved"] == c.status(1)["memory_used"]);
    SECTION("from memory") {
        for (auto& r : ranks) r.kill();
        ranks.clear();
        c.new_step(1, 1, {1, 2});
        ranks = start_ranks(c, 1, {1, 2}, 1, large);
        all_are(ask_all(ranks, "restart"), restored_state{.step = 4, .source = BCK_FROM_LOCAL});
        save(ranks, 5);
    }
    SECTION("over daemons that are killed") {
        for (const int node : {1, 2}) kill_below_keeper(c, node);
        for (int step = 5; step <= 9; ++step) save(ranks, step);
        CHECK(c.printed("checkpoints are off") == 0);
        for (const int node : {1, 2}) kill_below_keeper(c, node);
        for (auto& r : ranks) r.kill();
        ranks.clear();
        c.new_step(1, 1, {1, 2});
        ranks = start_ranks(c, 1, {1, 2}, 1, large);
        all_are(ask_all(ranks, "restart"), restored_state{.step = 9, .source = BCK_FROM_LOCAL});
        save(ranks, 10);
    }
    SECTION("from the other node's memory") {
        for (auto& r : ranks) r.kill();
        ranks.clear();
        c.kill(2, SIGKILL);
        REQUIRE(c.start(2));
        auto r = c.request(1, 2, 1, storage, 4);
        r.restart = 1;
        c.open(r);
        ranks = start_ranks(c, 1, {1, 2}, 1, large);
        CHECK(ask_all(ranks, "restart") == std::vector<restored_state>{{.step = 4, .source = BCK_FROM_LOCAL},
                                                                       {.step = 4, .source = BCK_FROM_PEER}});
        save(ranks, 5);
    }
    SECTION("from storage") {
        for (auto& r : ranks) r.kill();
        ranks.clear();
        for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 1, false, 5s));
        c.open(c.request(2, 2, 1, storage, 4));
        ranks = start_ranks(c, 2, {1, 2}, 1, large);
        all_are(ask_all(ranks, "restart"), restored_state{.step = 4, .source = BCK_FROM_STORAGE});
        save(ranks, 5);
    }
    SECTION("after it has grown, twice, and the daemon was killed") {
        all_are(ask_all(ranks, "grow 3000000"), BCK_OK);
        for (int step = 5; step <= 9; ++step) save(ranks, step);
        for (const int node : {1, 2}) kill_below_keeper(c, node);
        all_are(ask_all(ranks, "grow 9000000"), BCK_OK);
        for (int step = 10; step <= 13; ++step) save(ranks, step);
        for (auto& r : ranks) r.kill();
        ranks.clear();
        for (const int node : {1, 2}) kill_below_keeper(c, node);
        c.new_step(1, 1, {1, 2});
        ranks = start_ranks(c, 1, {1, 2}, 1, large);
        all_are(ask_all(ranks, "restart"), restored_state{.step = 13, .source = BCK_FROM_LOCAL});
        save(ranks, 14);
    }
    for (const int node : {1, 2}) {
        CHECK(c.counter(node, c.session(node, 1).is_null() ? 2 : 1, "damaged") == 0);
        CHECK(c.status(node)["sessions"].size() == 1);
    }
}

TEST_CASE("where there are fewer huge pages than memory the rest lies in others", "[ckptd]") {
    const huge_page_pool pool(of_rank + of_copy + 1);  // of four ranks and their copies
    if (!pool) return;
    cluster c({2, "", {}});
    c.open(c.request(3, 2, 2, "", 0));
    {
        auto ranks = start_ranks(c, 3, {1, 2}, 2, large);
        for (int step = 1; step <= 4; ++step) save(ranks, step);
        CHECK(pool.free() <= of_copy);
        CHECK((c.log(1) + c.log(2)).find("lie in reserved huge pages") != std::string::npos);
        CHECK((c.log(1) + c.log(2)).find("of 2 MiB are needed, and ") != std::string::npos);
        all_are(ask_all(ranks, "grow 5000000"), BCK_OK);
        for (int step = 5; step <= 8; ++step) save(ranks, step);
    }
    c.new_step(3, 1, {1, 2});
    auto ranks = start_ranks(c, 3, {1, 2}, 2, large);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 8, .source = BCK_FROM_LOCAL});
}

TEST_CASE("a library that knows no huge pages gets memory in others", "[ckptd]") {
    const huge_page_pool pool(of_rank);
    if (!pool) return;
    cluster c({1, "", {}});
    c.open(c.request(4, 1, 1, "", 0));
    {
        auto ranks = start_ranks(c, 4, {1}, 1, large);
        save(ranks, 1, 1);
        REQUIRE(pool.free() == 0);
    }
    const auto soon = [] { return banyan::clock::now() + 10s; };
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    const auto attach = [&](const json& more, banyan::unique_fd* memory) {
        json meta = attach_of(4, 0, 1, large);
        meta.update(more);
        REQUIRE(
            wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::attach), meta, {}, soon()));
        const auto reply = wire::receive_frame(fd->get(), soon(), memory);
        REQUIRE(reply);
        return reply->meta;
    };
    const auto is_huge = [](const banyan::unique_fd& memory) {
        struct statfs fs {};
        REQUIRE(::fstatfs(memory.get(), &fs) == 0);
        return fs.f_type == HUGETLBFS_MAGIC;
    };
    banyan::unique_fd known, unknown;
    const auto in_huge = attach({{"huge", true}}, &known);
    CHECK(in_huge["header"] == 2u << 20);
    CHECK(is_huge(known));
    const auto in_others = attach(json::object(), &unknown);
    CHECK_FALSE(in_others.contains("header"));
    CHECK_FALSE(is_huge(unknown));
    struct stat st {};
    REQUIRE(::fstat(unknown.get(), &st) == 0);
    CHECK(static_cast<std::uint64_t>(st.st_size) ==
          ckpt::page_bytes + 3 * in_others["buffer_bytes"].get<std::uint64_t>());
    fd->reset();
    // What was saved is still there.
    CHECK(c.session(1, 4)["committed"]["step"] == 1);
    c.new_step(4, 1, {1});
    auto ranks = start_ranks(c, 4, {1}, 1, large);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
}

TEST_CASE("memory that was made for nobody yet is not needed twice", "[ckptd]") {
    const huge_page_pool pool(of_rank);
    if (!pool) return;
    cluster c({1, "memory_limit = \"120M\"\n", {}});
    auto r = c.request(8, 1, 1, "", 0);
    r.bytes = large - (256u << 10);
    c.open(r);
    REQUIRE(pool.free() == 0);
    const auto soon = [] { return banyan::clock::now() + 20s; };
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    banyan::unique_fd memory;
    const json meta = attach_of(8, 0, 1, large);
    REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::attach), meta, {}, soon()));
    const auto reply = wire::receive_frame(fd->get(), soon(), &memory);
    REQUIRE(reply);
    INFO(reply->meta.dump());
    CHECK(memory);
    CHECK(reply->meta.contains("buffer_bytes"));
    CHECK(pool.free() == of_rank);
}

TEST_CASE("a rank that makes holes in its memory loses it, and nobody else anything", "[ckptd]") {
    const huge_page_pool pool(of_rank);
    if (!pool) return;
    cluster c({1, "", {}});
    c.open(c.request(9, 1, 1, "", 0));
    const auto pid = c.status(1)["pid"];
    const auto soon = [] { return banyan::clock::now() + 20s; };
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    banyan::unique_fd memory;
    const json meta = attach_of(9, 0, 1, large, {{"huge", true}});
    REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::attach), meta, {}, soon()));
    const auto reply = wire::receive_frame(fd->get(), soon(), &memory);
    REQUIRE(reply);
    REQUIRE(reply->meta["header"] == 2u << 20);
    void* at = ::mmap(nullptr, of_rank << 21, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    REQUIRE(at != MAP_FAILED);
    const banyan::mapping mine(at, of_rank << 21);
    auto& header = *reinterpret_cast<ckpt::rank_memory_header*>(mine.data() + (2u << 20) - ckpt::page_bytes);
    ckpt::begin_write(header.buffer[0]);
    std::fill_n(mine.data() + (2u << 20), large, std::byte{7});
    ckpt::end_write(header.buffer[0], 1, reply->meta["generation"].get<std::uint64_t>(), large);
    REQUIRE(::fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4u << 20, 2u << 20) == 0);
    auto thief = ckpt::file_of_reserved("thief", 2u << 20);
    REQUIRE(thief);
    REQUIRE(wire::send_frame(fd->get(), static_cast<std::uint16_t>(ckpt::message::sealed),
                             json{{"buffer", 0}}, {}, soon()));
    CHECK(says(c, 1, "rank 0 has made holes in the memory"));
    CHECK(eventually([&] { return c.status(1)["memory_used"] == 0; }));
    CHECK(c.session(1, 9)["committed"].is_null());
    CHECK(c.counter(1, 9, "damaged") == 0);
    CHECK(c.status(1)["pid"] == pid);
    fd->reset();
    c.new_step(9, 1, {1});
    auto ranks = start_ranks(c, 9, {1}, 1, large);
    save(ranks, 1, 1);
}

TEST_CASE("huge pages that are switched off are left alone", "[ckptd]") {
    const huge_page_pool pool(of_rank);
    if (!pool) return;
    cluster c({1, "huge_pages = \"off\"\n", {}});
    c.open(c.request(5, 1, 1, "", 0));
    auto ranks = start_ranks(c, 5, {1}, 1, large);
    save(ranks, 1, 1);
    CHECK(pool.free() == of_rank);
    CHECK(c.log(1).find("huge pages") == std::string::npos);
}

TEST_CASE("ranks save into transparent huge pages", "[ckptd]") {
    const huge_page_pool pool(0);
    const transparent_policy advise("advise");
    if (!pool || !advise) return;
    cluster c({2, "", {"--keeper"}});
    c.open(c.request(6, 2, 1, "", 0));
    auto ranks = start_ranks(c, 6, {1, 2}, 1, large);
    for (int step = 1; step <= 3; ++step) save(ranks, step);
    for (const int node : {1, 2}) CHECK(says(c, node, "lie in transparent huge pages"));
    all_are(ask_all(ranks, "grow 3000000"), BCK_OK);
    for (int step = 4; step <= 6; ++step) save(ranks, step);
    for (const int node : {1, 2}) kill_below_keeper(c, node);
    save(ranks, 7);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(6, 1, {1, 2});
    ranks = start_ranks(c, 6, {1, 2}, 1, large);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 7, .source = BCK_FROM_LOCAL});
}

}  // namespace test_ckptd_pages
