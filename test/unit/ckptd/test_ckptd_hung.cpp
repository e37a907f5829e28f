// SPDX-License-Identifier: BSD-3-Clause
//
// Storage that one node, or all of them, cannot reach, and steps in it that are damaged.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"
#include "gate.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace test_ckptd_hung {

using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t small = 100'000;

std::vector<rank_process> begin(const cluster& c, std::uint64_t job, int nodes, std::uint64_t flush) {
    std::vector<int> all;
    for (int node = 1; node <= nodes; ++node) all.push_back(node);
    c.open(c.request(job, nodes, 1, c.dir() + "/store", flush));
    c.new_step(job, 0, all);
    return start_ranks(c, job, all, 1, small);
}

/// Steps 1 and 2 in storage, and nothing in memory.
void store_two(const cluster& c) {
    auto ranks = begin(c, 7, 2, 1);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    for (const int step : {1, 2}) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 3 9000", step)), BCK_OK);
    }
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    for (const int node : {1, 2}) REQUIRE(banyan::ckpt::session_close(c.socket(node), 7, true, 5s));
}

void flip_a_bit(const fs::path& file, std::streamoff at) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const auto was = static_cast<char>(f.get());
    f.seekp(at);
    f.put(static_cast<char>(was ^ 1));
}

}  // namespace

TEST_CASE("one node whose storage hangs does not keep the job's steps from it", "[ckptd]") {
    const gate g;
    cluster c(g.on({3}, 4, "commit_warning_after = \"2s\"\n"));
    auto ranks = begin(c, 7, 4, 2);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    for (int step = 1; step <= 12; ++step) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 2 9000", step)), BCK_OK);
        if (step % 2 == 0) all_are(ask_all(ranks, fmt::format("wait {} 3 20000", step)), BCK_OK);
    }
    // What has hung writes again when it is back.
    g.open();
    for (int step = 13; step <= 14; ++step) all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    CHECK(is_stored(c, 14));
}

TEST_CASE("where the directory hangs all ranks hear it in time", "[ckptd]") {
    const gate g;
    g.open();
    cluster::options o{2, "restore_timeout = \"4s\"\n", {}};
    // Of the first node every look at the directory, or of the second one the read of its shard alone.
    const bool all = GENERATE(true, false);
    const int node = all ? 1 : 2;
    const std::string gate_file = banyan::testing::scratch_path("gate").string();
    o.before[node] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                      "SLOW_GATE=" + gate_file, all ? "SLOW_MATCH=OWNER" : "SLOW_READ=rank-000001"};
    cluster c(o);
    store_two(c);
    std::ofstream{gate_file};
    auto ranks = begin(c, 8, 2, 1);
    for (auto& r : ranks) r.say("restart");
    for (auto& r : ranks) {
        CHECK(r.hear() == not_restored(BCK_E_REFUSED));
        const auto why = r.ask("error");
        INFO(why);
        CHECK(why.find(c.name(node)) != std::string::npos);
        CHECK(why.find(c.dir() + "/store") != std::string::npos);
    }
    g.open();
    const auto begun = [&] {
        const auto said = ask_all(ranks, "restart");
        return std::ranges::all_of(said, [](const auto& a) { return a == found_step{.step = 2}; });
    };
    CHECK(eventually(begun));
}

TEST_CASE("a damaged MANIFEST.json or COMMIT is no reason to go back without a word", "[ckptd]") {
    cluster c({2, "", {}});
    store_two(c);
    const auto file = GENERATE(as<std::string>(), "MANIFEST.json", "COMMIT");
    flip_a_bit(c.dir() + "/store/step-000000000002/" + file, 3);
    auto ranks = begin(c, 8, 2, 1);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_STORAGE});
    CHECK(c.counter(1, 8, "damaged_storage") == 1);
    CHECK(c.log(1).find("step-000000000002") != std::string::npos);
    CHECK(eventually([&, step = 2]() mutable {
        all_are(ask_all(ranks, fmt::format("save {}", ++step)), BCK_OK);
        return c.printed("cannot be restored, an older one is looked for") == 1;
    }));
}

}  // namespace test_ckptd_hung
