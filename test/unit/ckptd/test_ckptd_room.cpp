// SPDX-License-Identifier: BSD-3-Clause
//
// A step that is there, and for which a node has no room for now.
#include <cerrno>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace test_ckptd_room {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

TEST_CASE("a step in storage is not given up because memory is short", "[ckptd]") {
    constexpr std::size_t large = 2'000'000;
    constexpr std::uint64_t limit = 40u << 20, left = 1u << 20;
    const bool bounded = GENERATE(true, false);
    CAPTURE(bounded);
    cluster c(
        {3, fmt::format("memory_limit = \"40M\"\nrestore_timeout = \"{}\"\n", bounded ? "2s" : "5m"), {}});
    const auto storage = c.dir() + "/store";
    {
        CHECK(c.open(c.request(7, 3, 1, storage, 1)).empty());
        auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, large);
        all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
        for (const char* step : {"1", "2"}) {
            all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
            all_are(ask_all(ranks, fmt::format("wait {} 3 9000", step)), BCK_OK);
        }
        all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    }
    for (const int node : {1, 2, 3}) REQUIRE(ckpt::session_close(c.socket(node), 7, false, 5s));
    auto other = c.request(8, 1, 1, "", 0);
    other.nodes[0] = {c.name(2), c.addr(2), {0}, 0};
    other.spares.clear();
    other.self = c.name(2);
    other.bytes = (limit - left) / other.buffers - (300u << 10);
    const auto opened = ckpt::session_open(c.socket(2), other, 10s);
    if (!opened) FAIL(opened.error().text());
    auto again = c.request(7, 3, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, large);
    const auto short_of = [&](const std::string& text) {
        return text.find("banyan-shard-7-1") != std::string::npos && text.find("MiB") != std::string::npos;
    };
    if (bounded) {
        // Where there is room all hear the same, on whichever node.
        for (const int rank : {0, 2}) ranks[static_cast<std::size_t>(rank)].say("restart");
        for (const int rank : {0, 2}) {
            auto& r = ranks[static_cast<std::size_t>(rank)];
            CHECK(r.hear() == BCK_E_REFUSED);
            const auto why = r.ask("error");
            CAPTURE(why);
            CHECK(why.find("nor from an older step: node n2: ") != std::string::npos);
            CHECK(short_of(why));
        }
    } else {
        ranks[0].say("restart");
        CHECK(eventually([&] { return short_of(c.session(2, 7)["warning"].get<std::string>()); }));
    }
    REQUIRE(ckpt::session_close(c.socket(2), 8, false, 5s));
    ranks[1].say("restart");
    // Until it is known that there is room the answer is the same.
    const auto begins = [&](rank_process& r, answer said) {
        CHECK(eventually([&] { return said != BCK_E_REFUSED || (said = r.ask("restart")).empty(); }));
        return said;
    };
    CHECK(begins(ranks[0], bounded ? ranks[0].ask("restart") : ranks[0].hear()) ==
          restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(begins(ranks[2], ranks[2].ask("restart")) == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(begins(ranks[1], ranks[1].hear()) == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(c.printed("an older one is looked for") == 0);
}

namespace {

/// Exists until it is opened.
class held_gate {
  public:
    held_gate() { std::ofstream(path_) << ""; }
    ~held_gate() { open(); }
    held_gate(const held_gate&) = delete;
    void open() const { ::unlink(path_.c_str()); }
    void shut() const { std::ofstream(path_) << ""; }
    /// What a daemon is run by that cannot open `what`, as long as it is shut.
    std::vector<std::string> before_open(const std::string& what, int error) const {
        return {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"), "SLOW_GATE=" + path_,
                "OPEN_MATCH=" + what, "OPEN_ERROR=" + std::to_string(error)};
    }
    /// What a daemon is run by that reads `what` as it says.
    std::vector<std::string> before(const std::string& what, int error = 0) const {
        return {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"), "SLOW_GATE=" + path_,
                "SLOW_READ=" + what, "READ_ERROR=" + std::to_string(error)};
    }

  private:
    std::string path_ = banyan::testing::scratch_path("gate-room").string();
};

/// Steps 1 and 2 in storage, and nothing in memory.
void store_two(const cluster& c, int nodes, const std::string& storage, std::size_t bytes) {
    CHECK(c.open(c.request(7, nodes, 1, storage, 1)).empty());
    std::vector<int> all;
    for (int node = 1; node <= nodes; ++node) all.push_back(node);
    auto ranks = start_ranks(c, 7, all, 1, bytes);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    for (const char* step : {"1", "2"}) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 3 9000", step)), BCK_OK);
    }
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    for (const int node : all) REQUIRE(ckpt::session_close(c.socket(node), 7, false, 5s));
}

}  // namespace

TEST_CASE("a node that had no room for a while does not end a launch that waits for another one", "[ckptd]") {
    constexpr std::size_t large = 5'000'000;  // two chunks
    constexpr std::uint64_t limit = 40u << 20, left = 1u << 20;
    // Each chunk of node 3's shard takes almost as long as a beginning is waited for that something hinders.
    cluster c({3,
               "memory_limit = \"40M\"\nrestore_timeout = \"5s\"\n",
               {},
               {{3,
                 {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                  "SLOW_READ=step-000000000002/rank-000002", "SLOW_LO=4000", "SLOW_HI=4000"}}}});
    const auto storage = c.dir() + "/store";
    store_two(c, 3, storage, large);
    auto other = c.request(8, 1, 1, "", 0);
    other.nodes[0] = {c.name(2), c.addr(2), {0}, 0};
    other.spares.clear();
    other.self = c.name(2);
    other.bytes = (limit - left) / other.buffers - (300u << 10);
    const auto opened = ckpt::session_open(c.socket(2), other, 10s);
    if (!opened) FAIL(opened.error().text());
    auto again = c.request(7, 3, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, large);
    ranks[0].say("restart");
    // Slot 0's daemon has heard of it.
    CHECK(eventually([&] { return c.printed("wait for their state: node n2: ") != 0; }));
    REQUIRE(ckpt::session_close(c.socket(2), 8, false, 5s));
    // Nothing hinders node 3, whose shard is only slow: no time at all is too long for it.
    CHECK(ranks[0].hear() == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(ranks[1].ask("restart") == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(ranks[2].ask("restart") == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
}

TEST_CASE("a file that its file system calls damaged is, one that is not answered for is waited for",
          "[ckptd]") {
    const int said = GENERATE(EBADMSG, EIO, ETIMEDOUT);
    const bool damaged = said == EBADMSG;
    CAPTURE(said);
    const held_gate gate;
    cluster c({2, "", {}, {{2, gate.before("step-000000000002/rank-000001", said)}}});
    const auto storage = c.dir() + "/store";
    store_two(c, 2, storage, 100'000);
    auto again = c.request(7, 2, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    if (!damaged) {
        CHECK(eventually([&] {
            return c.session(2, 7)["warning"].get<std::string>().find("cannot read") != std::string::npos;
        }));
        gate.open();
    }
    for (auto& r : ranks)
        CHECK(r.hear() == (damaged ? restored_state{.step = 1, .source = BCK_FROM_STORAGE}
                                   : restored_state{.step = 2, .source = BCK_FROM_STORAGE}));
    if (damaged)
        CHECK(eventually([&] {
            return c.session(2, 7)["warning"].get<std::string>().find("an older one is looked for") !=
                   std::string::npos;
        }));
    else
        CHECK(c.printed("an older one is looked for") == 0);
}

TEST_CASE("a step in storage that the first slot cannot look at is waited for", "[ckptd]") {
    const auto what = GENERATE(as<std::string>(), "step-000000000002", "MANIFEST.json");
    const int said = GENERATE(EIO, EACCES, EUCLEAN);
    const bool damaged = said == EUCLEAN;
    CAPTURE(what, said);
    if (damaged && what == "MANIFEST.json") return;  // of all steps
    const held_gate gate;
    gate.open();
    cluster c({2, "", {}, {{1, gate.before_open(what, said)}}});
    const auto storage = c.dir() + "/store";
    store_two(c, 2, storage, 100'000);
    gate.shut();
    auto again = c.request(7, 2, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    if (!damaged) {
        CHECK(eventually([&] { return c.printed("wait for their state: cannot open " + storage) != 0; }));
        gate.open();
    }
    for (auto& r : ranks)
        CHECK(r.hear() == (damaged ? restored_state{.step = 1, .source = BCK_FROM_STORAGE}
                                   : restored_state{.step = 2, .source = BCK_FROM_STORAGE}));
}

TEST_CASE("an older step in storage that cannot be looked at holds up nobody", "[ckptd]") {
    const held_gate gate;
    gate.open();
    cluster c({2, "", {}, {{1, gate.before_open("step-000000000001", EIO)}}});
    const auto storage = c.dir() + "/store";
    store_two(c, 2, storage, 100'000);
    gate.shut();
    auto again = c.request(7, 2, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    for (auto& r : ranks) CHECK(r.hear() == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    gate.open();
}

TEST_CASE("a directory that is not mounted at the first slot is no empty one", "[ckptd]") {
    const auto flush = GENERATE(0u, 1u);
    cluster c({2, "restore_timeout = \"2s\"\n", {}});
    const auto mount = c.dir() + "/mount";
    const auto storage = mount + "/store";
    store_two(c, 2, storage, 100'000);
    std::filesystem::rename(mount, mount + ".away");
    std::filesystem::create_symlink(c.dir() + "/nowhere/at/all", mount);
    auto again = c.request(7, 2, 1, storage, flush);
    again.restart = 1;
    c.open(again);
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    ranks[1].say("restart");
    // An error in bounded time, which says why.
    answer said;
    CHECK(eventually([&] { return (said = ranks[0].ask("restart")) == not_restored(BCK_E_REFUSED); }));
    const auto why = ranks[0].ask("error");
    INFO(said << ' ' << why);
    CHECK(why.find("no checkpoint is seen in " + storage) != std::string::npos);
    // So do the ranks of the other nodes.
    CHECK(ranks[1].hear() == not_restored(BCK_E_REFUSED));
    CHECK(ranks[1].ask("error").find(storage) != std::string::npos);
    std::filesystem::remove(mount);
    std::filesystem::rename(mount + ".away", mount);
    CHECK(eventually([&] {
        return (said = ranks[0].ask("restart")) == restored_state{.step = 2, .source = BCK_FROM_STORAGE};
    }));
    CHECK(ranks[1].ask("restart") == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
}

TEST_CASE("a manifest that a node cannot read for now is not gone", "[ckptd]") {
    const int said = GENERATE(EACCES, ENOMEM);
    CAPTURE(said);
    const held_gate gate;
    gate.open();
    cluster c({2, "", {}, {{2, gate.before_open("MANIFEST.json", said)}}});
    const auto storage = c.dir() + "/store";
    store_two(c, 2, storage, 100'000);
    gate.shut();
    auto again = c.request(7, 2, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    CHECK(eventually([&] {
        return c.session(2, 7)["warning"].get<std::string>().find("cannot open") != std::string::npos;
    }));
    pass(3s);  // longer than it takes to look three times
    gate.open();
    for (auto& r : ranks) CHECK(r.hear() == restored_state{.step = 2, .source = BCK_FROM_STORAGE});
    CHECK(c.printed("an older one is looked for") == 0);
}

TEST_CASE("a flush that finds no space has failed, and is none that a newer step has overtaken", "[ckptd]") {
    const held_gate gate;
    auto before = gate.before_open(".flush.", ENOSPC);
    before.insert(before.begin() + 1, "OPEN_ONCE=1");
    cluster c({1, "", {}, {{1, before}}});
    c.open(c.request(7, 1, 1, c.dir() + "/store", 1));
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1}, 1, 100'000);
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    CHECK(eventually([&] { return c.counter(1, 7, "flush_failures") == 1; }));
    CHECK(ranks[0].ask("save 2") == BCK_OK);
    CHECK(eventually([&] { return c.printed("checkpoints do not reach storage") == 1; }));
    CHECK(ranks[0].ask("wait 2 3 9000") == BCK_OK);
}

}  // namespace test_ckptd_room
