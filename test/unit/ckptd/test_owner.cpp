// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint directory belongs to one job and its newest generation; whoever it was before can do nothing.
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "ckptd/store/leftovers.hpp"
#include "steps.hpp"

namespace test_owner {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

owner_record owner_of(const std::string& dir) {
    const auto seen = read_owner(self(), dir);
    REQUIRE(seen);
    REQUIRE(*seen);
    return **seen;
}

std::vector<std::string> names(const std::string& dir) {
    std::vector<std::string> out;
    for (const auto& e : fs::directory_iterator(dir)) out.push_back(e.path().filename());
    std::sort(out.begin(), out.end());
    return out;
}

claim wish(const std::string& dir, std::uint64_t job, std::uint64_t generation) {
    return {dir, 0, job, generation, "n2", 1000, 0};
}

}  // namespace

TEST_CASE("whose directory it is: nobody's, given up, another job's, a newer generation's", "[ckptd]") {
    const owner_record other{3, 100, 5, "n1", 1000, 7, false};
    CHECK(judge_owner(std::nullopt, 200, 1) == claim_verdict::take);
    CHECK(judge_owner(other, 200, 9) == claim_verdict::watch);
    CHECK(judge_owner(other, 100, 6) == claim_verdict::take);
    CHECK(judge_owner(other, 100, 5) == claim_verdict::take);
    CHECK(judge_owner(other, 100, 4) == claim_verdict::fenced);
    auto released = other;
    released.released = true;
    CHECK(judge_owner(released, 200, 1) == claim_verdict::take);
    CHECK(judge_owner(released, 100, 4) == claim_verdict::fenced);
    CHECK(judge_owner(owner_record{3, 0, 0, "", 0, 0, false}, 200, 1) == claim_verdict::watch);
}

TEST_CASE("a claim: taken, seen, its beat changes, given up", "[ckptd]") {
    const temporary t;
    CHECK_FALSE(*read_owner(self(), t.dir()));
    auto c = own(t.dir(), 100, 5);
    const auto first = owner_of(t.dir());
    CHECK(first == owner_record{1, 100, 5, "n1", 1000, 0, false});
    REQUIRE(check_claim(self(), c));
    REQUIRE(beat_claim(self(), c));
    CHECK(owner_of(t.dir()).beat == 1);
    REQUIRE(release_claim(self(), c));
    CHECK(owner_of(t.dir()).released);
    // A claim that is being written, or that somebody has damaged, is nobody's and is watched.
    std::ofstream(t.dir() + "/OWNER.2") << "";
    CHECK(owner_of(t.dir()) == owner_record{2, 0, 0, "", 0, 0, false});
    CHECK(check_claim(self(), c).error().code == banyan::errc::conflict);
}

TEST_CASE("of many that take over one succeeds", "[ckptd]") {
    const temporary t;
    own(t.dir(), 100, 1);
    for (int round = 0; round < 20; ++round) {
        const auto seen = *read_owner(self(), t.dir());
        std::vector<std::optional<claim>> got(6);
        {
            std::vector<std::jthread> all;
            for (std::size_t i = 0; i < got.size(); ++i)
                all.emplace_back([&, i] {
                    if (auto c = take_claim(self(), wish(t.dir(), 200 + i, 1), seen)) got[i] = *c;
                });
        }
        CHECK(std::count_if(got.begin(), got.end(), [](const auto& c) { return c.has_value(); }) == 1);
        for (const auto& c : got)
            if (c) CHECK(check_claim(self(), *c));
    }
    CHECK(names(t.dir()).size() == 1);
}

TEST_CASE("who was taken over can do nothing", "[ckptd]") {
    const temporary t;
    auto old = own(t.dir(), 100, 1);
    REQUIRE(write_step(old, 10));
    const auto flush = open_flush(self(), old);
    REQUIRE(flush);
    const auto late = ckptd_test::write_files(old, *flush, 20);
    const auto now = own(t.dir(), 100, 2);
    const auto conflict = [](const auto& r) { return !r && r.error().code == banyan::errc::conflict; };
    CHECK(conflict(check_claim(self(), old)));
    CHECK(conflict(beat_claim(self(), old)));
    CHECK(conflict(release_claim(self(), old)));
    CHECK(conflict(open_flush(self(), old)));
    // Its flush was put away: what it writes and renames late finds nothing.
    CHECK_FALSE(commit_step(self(), old, *flush, late));
    const auto image = make_image(20, 0);
    CHECK_FALSE(
        write_shard(self(), t.dir(), *flush, 20, 0, image, chunk_checksums(image), [](std::uint64_t) {}));
    CHECK(names(t.dir()) == std::vector<std::string>{"OWNER.2", "latest", "step-000000000010"});
    CHECK(check_claim(self(), now));
    // Not even where a folder of that name came back.
    fs::create_directory(t.dir() + "/" + *flush);
    CHECK(conflict(commit_step(self(), old, *flush, ckptd_test::write_files(old, *flush, 20))));
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{10});
    // After two successors the number that follows the first one's is gone again; so is his own.
    own(t.dir(), 100, 3);
    CHECK(conflict(check_claim(self(), old)));
    CHECK(conflict(check_claim(self(), now)));
}

TEST_CASE("a newer generation's step of the same number replaces the older, never the other way", "[ckptd]") {
    const temporary t;
    const auto old = own(t.dir(), 100, 1);
    REQUIRE(write_step(old, 10));
    const auto now = own(t.dir(), 100, 2);
    REQUIRE(write_step(now, 10, 2, 1000));
    CHECK(load_step(t.dir(), 10)->generation == 2);
    CHECK(verify_step(self(), t.dir(), 10, 2));
    CHECK(names(t.dir()) == std::vector<std::string>{"OWNER.2", "latest", "step-000000000010"});
    // However its claim came to look valid.
    const auto again = own(t.dir(), 100, 1);
    CHECK_FALSE(write_step(again, 10));
    CHECK(load_step(t.dir(), 10)->generation == 2);
}

TEST_CASE("files that the leader does not see: no commit, and the ranks are named", "[ckptd]") {
    const temporary t;
    const auto c = own(t.dir());
    const auto flush = open_flush(self(), c);
    const auto m = ckptd_test::write_files(c, *flush, 8);
    const auto file = t.dir() + "/" + *flush + "/rank-000001.safetensors";
    SECTION("missing") {
        fs::remove(file);
        const auto done = commit_step(self(), c, *flush, m);
        REQUIRE_FALSE(done);
        CHECK(done.error().what == "the files of rank 1 of step 8 are not to be seen from node n1");
        CHECK(done.error().hint == "is " + t.dir() + " a directory that all nodes of the job share?");
    }
    SECTION("too short") {
        fs::resize_file(file, 100);
        CHECK_FALSE(commit_step(self(), c, *flush, m));
    }
    CHECK(list_steps(self(), t.dir())->empty());
    drop_flush(self(), t.dir(), *flush);
    CHECK(names(t.dir()) == std::vector<std::string>{"OWNER.1"});
}

TEST_CASE("what unfinished flushes and removals have left goes with the next owner", "[ckptd]") {
    const temporary t;
    write_step(t.dir(), 10);
    const auto first = own(t.dir());
    ckptd_test::write_files(first, *open_flush(self(), first), 20);
    fs::create_directory(t.dir() + "/step-000000000030");
    std::ofstream(t.dir() + "/step-000000000030/rank-000000.safetensors") << "x";
    fs::create_directory(t.dir() + "/step-000000000040");
    const std::vector<std::string> mine{".rank-list", "notes.txt", "rank-0.csv", "rank-000000.txt",
                                        "rank-map.json"};
    for (const auto& name : mine) std::ofstream(t.dir() + "/step-000000000040/" + name) << "mine";
    for (const char* name : {".COMMIT.0123456789abcdef", ".rank-000001.safetensors.n2.tmp", "MANIFEST.json",
                             "rank-000000.safetensors", "rank-1000000.safetensors"})
        std::ofstream(t.dir() + "/step-000000000040/" + name) << "banyan's";
    fs::create_directories(t.dir() + "/.trash.1");
    own(t.dir());
    CHECK(names(t.dir()) ==
          std::vector<std::string>{"OWNER.3", "latest", "step-000000000010", "step-000000000040"});
    CHECK(names(t.dir() + "/step-000000000040") == mine);
}

TEST_CASE(
    "a replacement that stopped half-way: readers find the old step, the next owner gives its name back",
    "[ckptd]") {
    const temporary t;
    write_step(t.dir(), 10);
    write_step(t.dir(), 20);
    fs::rename(t.dir() + "/step-000000000020", t.dir() + "/.replaced.step-000000000020");
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{20, 10});
    CHECK(verify_step(self(), t.dir(), 20, 2));
    own(t.dir());
    CHECK(fs::exists(t.dir() + "/step-000000000020/COMMIT"));
    CHECK_FALSE(fs::exists(t.dir() + "/.replaced.step-000000000020"));
    // And one that stopped after it.
    fs::copy(t.dir() + "/step-000000000010", t.dir() + "/.replaced.step-000000000020");
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{20, 10});
    own(t.dir());
    CHECK_FALSE(fs::exists(t.dir() + "/.replaced.step-000000000020"));
    CHECK(load_step(t.dir(), 20)->step == 20);
}

TEST_CASE("a damaged file: its step is passed over and named, the next older whole one is found", "[ckptd]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20, 30}) write_step(t.dir(), step, 3);
    const auto flip = [&](std::uint64_t step, const char* name) {
        std::fstream f(step_folder(t.dir(), step) + "/" + name,
                       std::ios::in | std::ios::out | std::ios::binary);
        f.seekg(4'600'000);
        const char c = static_cast<char>(f.get() ^ 4);
        f.seekp(4'600'000);
        f.put(c);
    };
    std::vector<std::pair<std::uint64_t, std::string>> told;
    const auto newest = [&](std::optional<std::uint64_t> below = {}) {
        told.clear();
        const auto found = newest_whole_step(
            self(), t.dir(), 2, below,
            [&](std::uint64_t step, const auto& why) { told.emplace_back(step, why.what); });
        REQUIRE(found);
        return *found ? (*found)->step : 0;
    };
    CHECK(newest() == 30);
    flip(30, "rank-000001.safetensors");
    CHECK(newest() == 20);
    REQUIRE(told.size() == 1);
    CHECK(told[0].first == 30);
    CHECK(told[0].second ==
          t.dir() + "/step-000000000030/rank-000001.safetensors is damaged: checksum of its chunk 1 differs");
    CHECK(verify_step(self(), t.dir(), 30, 2, [](std::uint32_t rank) { return rank == 0; }));
    fs::remove(step_folder(t.dir(), 20) + "/rank-000000.safetensors");
    CHECK(newest() == 10);
    CHECK(told.size() == 2);
    CHECK(newest(20) == 10);
    CHECK(told.empty());
    CHECK(newest(10) == 0);
}

TEST_CASE("the name of a flush's folder that another node sends is a name", "[ckptd]") {
    CHECK(is_flush_name(".flush.12.100000001.00ff"));
    for (const char* name :
         {"", ".flush", ".flush./..", ".flush.12/../../x", "step-000000000010", ".flush.x"})
        CHECK_FALSE(is_flush_name(name));
}

TEST_CASE("the nodes of a claim: written, taken back, and only as long as the file is ours", "[ckptd]") {
    temporary t;
    claim wanted{t.dir(), 0, 100, 5, "n1", 1000, 0};
    wanted.nodes = {{"n1", "10.0.0.1"}, {"n2", "fd00::2"}, {"named", "host.example"}};
    auto c = take_claim(self(), wanted, std::nullopt);
    REQUIRE(c);
    // A name is nothing to look up.
    CHECK(owner_of(t.dir()).nodes ==
          std::map<std::string, std::string>{{"n1", "10.0.0.1"}, {"n2", "fd00::2"}});
    REQUIRE(beat_claim(self(), *c));
    CHECK(owner_of(t.dir()).nodes.size() == 2);
    c->nodes.erase("n2");
    REQUIRE(rewrite_nodes(self(), *c));
    CHECK(owner_of(t.dir()).nodes == std::map<std::string, std::string>{{"n1", "10.0.0.1"}});
    CHECK(owner_of(t.dir()).beat == 1);
    // A user may make it as long as he likes: nothing of that length is made here.
    const auto file = t.dir() + "/OWNER.1";
    std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
    REQUIRE(rewrite_nodes(self(), *c));
    CHECK(std::filesystem::file_size(file) == std::uintmax_t{1} << 40);
}

}  // namespace test_owner
