// SPDX-License-Identifier: BSD-3-Clause
//
// Data parallel copies: storage has one of them, and every rank has its state back.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "cluster.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace test_ckptd_alike {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t rows = 40, ranks_of_a_copy = 2, world = 4;

/// Which rows the rank has: of copies, those of the rank so many before it.
void has_rows(rank_process& rank, std::uint64_t number, std::uint64_t copies) {
    const auto parts = world / copies, part = number % parts;
    CHECK(rank.ask("rows " + std::to_string(rows * part / parts) + " " + std::to_string(rows / parts) + " " +
                   std::to_string(rows)) == 0);
    CHECK(rank.ask("rows_own") == 0);
}

std::vector<rank_process> begin(const cluster& c, std::uint64_t job) {
    auto ranks = start_ranks(c, job, {1, 2}, 2, 100);
    for (std::uint64_t i = 0; i < world; ++i) has_rows(ranks[i], i, world / ranks_of_a_copy);
    return ranks;
}

void save(std::vector<rank_process>& ranks, std::uint64_t step) {
    all_are(ask_all(ranks, "rows_save " + std::to_string(step)), BCK_OK);
    all_are(ask_all(ranks, "wait " + std::to_string(step) + " 3 9000"), BCK_OK);
}

void all_begin_with(std::vector<rank_process>& ranks, std::uint64_t step, const std::string& how) {
    const auto answers = ask_all(ranks, how), errors = ask_all(ranks, "error");
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        CAPTURE(how, rank, errors[rank]);
        CHECK(answers[rank] == restored_state{BCK_OK, step, BCK_FROM_STORAGE, true});
    }
}

void end(const cluster& c, std::uint64_t job, std::vector<rank_process>& ranks) {
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), job, 5s));
}

std::string step_folder(const std::string& dir, std::uint64_t step) {
    const auto number = std::to_string(step);
    return dir + "/step-" + std::string(12 - number.size(), '0') + number;
}

std::vector<json> files_of(const std::string& dir, std::uint64_t step) {
    std::ifstream in(step_folder(dir, step) + "/MANIFEST.json");
    return json::parse(in)["files"].get<std::vector<json>>();
}

ckpt::session_request job(const cluster& c, std::uint64_t id, const std::string& dir) {
    return c.request(id, 2, 2, dir, 1);
}

}  // namespace

TEST_CASE("one copy of what ranks hold alike is stored", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);  // shows who holds what
    save(ranks, 2);
    const auto files = files_of(dir, 2);
    REQUIRE(files.size() == world);
    for (std::size_t rank = 0; rank < world; ++rank) {
        CAPTURE(rank);
        const bool is_first = rank < ranks_of_a_copy;
        CHECK(files[rank].contains("pieces_in") != is_first);
        if (!is_first) CHECK(files[rank]["pieces_in"] == rank - ranks_of_a_copy);
        const auto bytes = fs::file_size(step_folder(dir, 2) + "/" + files[rank]["path"].get<std::string>());
        CHECK((bytes > 1'000'000) == is_first);
    }
    end(c, 7, ranks);

    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = begin(c, 8);
    const auto stat = ranks[3].ask("stat");
    CAPTURE(stat);
    CHECK(stat == found_step{.step = 2});
    for (const auto* name : {" table:U8:[20,70001]", " own:U8:[10007]", " step:U64:[]"})
        CHECK(stat.find(name) != std::string::npos);
    all_begin_with(ranks, 2, "rows_restart");
    save(ranks, 3);
    save(ranks, 4);
    CHECK(files_of(dir, 4)[3]["pieces_in"] == 1);
    end(c, 8, ranks);
    // Another number of ranks finds each part once; what is a rank's own is not asked for.
    auto fewer = c.request(9, 1, 1, dir, 1);
    fewer.spares.clear();
    CHECK(c.open(fewer).empty());
    ranks = start_ranks(c, 9, {1}, 1, 100);
    CHECK(ranks[0].ask("rows 0 40 40") == 0);
    all_begin_with(ranks, 4, "rows_restart");
}

TEST_CASE("a job that begins from storage and saves nothing has nothing to bring there", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);
    save(ranks, 2);  // of which storage has one copy for two ranks
    end(c, 7, ranks);
    const auto written = fs::last_write_time(step_folder(dir, 2) + "/MANIFEST.json");
    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = begin(c, 8);
    all_begin_with(ranks, 2, "rows_restart");
    for (const int node : {1, 2}) CHECK(c.session(node, 8)["durable"]["step"] == 2);
    all_are(ask_all(ranks, "wait 2 3 0"), BCK_OK);
    end(c, 8, ranks);
    for (const int node : {1, 2}) CHECK(eventually([&] { return c.session(node, 8).is_null(); }));
    CHECK(fs::last_write_time(step_folder(dir, 2) + "/MANIFEST.json") == written);
}

TEST_CASE("a rank takes some of a step, or nothing, and goes on", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);
    end(c, 7, ranks);
    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = start_ranks(c, 8, {1, 2}, 2, 100);
    // Each has memory for 100 bytes, and the step more than a megabyte for it.
    if (GENERATE(true, false)) all_are(ask_all(ranks, "into own:10007"), BCK_OK);
    all_are(ask_all(ranks, "into"), restored_state{BCK_OK, 1, BCK_FROM_STORAGE, true});
    all_are(ask_all(ranks, "save 2"), BCK_OK);
}

TEST_CASE("ranks that cease to hold the same lose nothing", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);
    save(ranks, 2);
    CHECK(files_of(dir, 2)[2].contains("pieces_in"));
    for (std::uint64_t i = 0; i < world; ++i) has_rows(ranks[i], i, 1);
    save(ranks, 3);
    for (const auto& file : files_of(dir, 3)) CHECK_FALSE(file.contains("pieces_in"));
    for (std::uint64_t i = 0; i < world; ++i) has_rows(ranks[i], i, 4);
    save(ranks, 4);
    save(ranks, 5);
    end(c, 7, ranks);
    for (const auto& file : files_of(dir, 5)) CHECK(file.contains("pieces_in") == (file["rank"] != 0));

    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = start_ranks(c, 8, {1, 2}, 2, 100);
    for (std::uint64_t i = 0; i < world; ++i) has_rows(ranks[i], i, 4);
    all_begin_with(ranks, 5, "rows_restart");
}

TEST_CASE("a file that gets its name after the commit is the one that was committed", "[ckptd]") {
    const auto gate = banyan::testing::scratch_path("gate");
    cluster::options o{2, "commit_warning_after = \"2s\"\n", {}};
    o.before[2] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"), "SLOW_RENAME=rank-",
                   "SLOW_GATE=" + gate.string()};
    cluster c(o);
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);
    // The second node has written its ranks' files and hangs; the first one writes them in its place.
    std::ofstream{gate};
    all_are(ask_all(ranks, "rows_save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 3 20000"), BCK_OK);
    const auto committed = files_of(dir, 2);
    fs::remove(gate);
    const auto is_unfinished = [](const auto& entry) { return entry.path().extension() != ".safetensors"; };
    CHECK(eventually([&] {
        const fs::directory_iterator entries(step_folder(dir, 2)), end;
        return std::count_if(entries, end, is_unfinished) == 2;  // MANIFEST.json, COMMIT
    }));
    for (const auto& file : committed)
        CHECK(fs::file_size(step_folder(dir, 2) + "/" + file["path"].get<std::string>()) == file["size"]);
    end(c, 7, ranks);
    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = begin(c, 8);
    all_begin_with(ranks, 2, "rows_restart");
}

TEST_CASE("a damaged copy is damaged for all who have their state there", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, dir)).empty());
    auto ranks = begin(c, 7);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, 1);
    save(ranks, 2);
    end(c, 7, ranks);
    {
        // Rank 3's parts are in rank 1's file, and what is its own in its own.
        const int rank = GENERATE(1, 3);
        CAPTURE(rank);
        std::fstream file(step_folder(dir, 2) + "/rank-00000" + std::to_string(rank) + ".safetensors",
                          std::ios::in | std::ios::out);
        file.seekp(rank == 1 ? 500'000 : 6'000);
        file.put('\x7f').put('\x7e');
    }
    CHECK(c.open(job(c, 8, dir)).empty());
    ranks = begin(c, 8);
    // A rank's daemon finds it before any rank goes: all begin with the step before.
    all_begin_with(ranks, 1, "rows_restart");
}

}  // namespace test_ckptd_alike
