// SPDX-License-Identifier: BSD-3-Clause
//
// Storage between jobs, generations and nodes: whose directory it is, storage that is slower than the saves,
// writers that come late, directories that only look like one.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"
#include "common/file.hpp"
#include "gate.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace test_ckptd_storage {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;

namespace {

/// One rank of `job` on `node`, which restores what there is.
rank_process start_alone(const cluster& c, std::uint64_t job, int node, const std::string& storage,
                         std::uint32_t restart, const restored_state& restored) {
    auto r = c.request(job, 1, 1, storage, 10);
    r.nodes[0] = {c.name(node), c.addr(node), {0}, 0};
    r.spares.clear();
    r.restart = restart;
    r.self = c.name(node);
    const auto opened = ckpt::session_open(c.socket(node), r, 10s);
    if (!opened) FAIL(opened.error().text());
    REQUIRE(ckpt::step_open(c.socket(node), {job, 0, {c.name(node)}}, 5s));
    rank_process rank(c, node, job, 0, 1, 100'000);
    CHECK(rank.ask("restart") == restored);
    return rank;
}

std::vector<std::string> names(const std::string& dir) {
    std::vector<std::string> out;
    for (const auto& e : fs::directory_iterator(dir)) out.push_back(e.path().filename());
    std::sort(out.begin(), out.end());
    return out;
}

bool verified(const std::string& dir) {
    return std::system(
               (banyan::testing::built("banyan-ckpt") + " verify " + dir + " >/dev/null 2>&1").c_str()) == 0;
}

bool holds_flush(const std::string& dir) {
    for (const auto& name : names(dir))
        if (name.starts_with(".flush.") || name.starts_with(".trash.")) return true;
    return false;
}

}  // namespace

TEST_CASE("two jobs, one directory: the second one is told whose it is and touches nothing", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    auto first = start_alone(c, 100, 1, storage, 0, not_restored(BCK_E_NOTFOUND));
    for (const char* step : {"1000", "1010"}) {
        CHECK(first.ask(std::string("save ") + step) == BCK_OK);
        CHECK(first.ask(std::string("wait ") + step + " 3 9000") == BCK_OK);
    }
    {
        auto second = start_alone(c, 200, 2, storage, 0, not_restored(BCK_E_REFUSED));
        CHECK(second.ask("error").find("belongs to job 100") != std::string::npos);
        // One that trains all the same has not heard what it was to begin with, and saves nothing.
        CHECK(second.ask("save 20") == BCK_E_STALE);
        CHECK(second.ask("wait 20 1 300") == BCK_E_STALE);
        CHECK(c.printed("belongs to job 100, which is running (node n1)") == 1);
    }
    const std::vector<std::string> kept{"OWNER.1", "latest", "step-000000001000", "step-000000001010"};
    CHECK(eventually([&] { return names(storage) == kept; }));
    CHECK(first.ask("save 1020") == BCK_OK);
    CHECK(first.ask("wait 1020 3 9000") == BCK_OK);
    // The first one ends in order: whoever goes on with its directory does not wait.
    CHECK(first.ask("finalize 1") == BCK_OK);
    REQUIRE(ckpt::session_close(c.socket(1), 100, true, 5s));
    const auto began = banyan::clock::now();
    auto next = start_alone(c, 300, 2, storage, 0, restored_state{.step = 1020, .source = BCK_FROM_STORAGE});
    CHECK(banyan::clock::now() - began < 6s);
    CHECK(next.ask("save 1030") == BCK_OK);
    CHECK(next.ask("wait 1030 3 9000") == BCK_OK);
    const std::vector<std::string> left{"OWNER.2", "latest", "step-000000001020", "step-000000001030"};
    CHECK(eventually([&] { return names(storage) == left; }));
}

TEST_CASE("a directory whose job is dead is taken over, and no generation of it comes back", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    fs::create_directory(storage);
    std::ofstream(storage + "/OWNER.7")
        << R"({"job":999,"generation":1,"node":"gone","beat_ms":50,"released":false,"beat":3})";
    auto rank = start_alone(c, 100, 1, storage, 1, not_restored(BCK_E_NOTFOUND));
    CHECK(rank.ask("save 10") == BCK_OK);
    CHECK(rank.ask("wait 10 3 9000") == BCK_OK);
    CHECK(names(storage) == std::vector<std::string>{"OWNER.8", "latest", "step-000000000010"});
    // An older start of the job, on a node that did not hear of the newer one.
    auto old = start_alone(c, 100, 2, storage, 0, not_restored(BCK_E_REFUSED));
    CHECK(old.ask("save 20") == BCK_E_STALE);
    CHECK(c.session(2, 100)["warning"].get<std::string>().find("used by a newer start of job 100") !=
          std::string::npos);
    CHECK(names(storage) == std::vector<std::string>{"OWNER.8", "latest", "step-000000000010"});
}

TEST_CASE("a directory that the nodes do not share: no commit, and the user hears why", "[ckptd]") {
    if (::geteuid() != 0) return;
    cluster::options o{2, "", {}};
    o.before[2] = {"unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt && exec \"$@\"", "sh"};
    cluster c(o);
    const fs::path mine = "/mnt/banyan-" + fs::path(c.dir()).filename().string();
    const struct removing {
        fs::path path;
        ~removing() {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    } removing{mine};
    const auto storage = mine.string();
    c.open(c.request(7, 2, 1, storage, 1));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2});
    for (std::uint64_t step = 1; step < 4; ++step) {
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 5000"), BCK_OK);
        CHECK(eventually([&] { return c.counter(1, 7, "flush_failures").get<std::uint64_t>() >= step; }));
    }
    all_are(ask_all(ranks, "wait 3 3 0"), BCK_E_TIMEOUT);
    CHECK(c.printed("node n2 does not see the folder") == 1);
    CHECK(c.printed("a directory that all nodes of the job share?") == 1);
    CHECK(eventually([&] { return names(storage) == std::vector<std::string>{"OWNER.1"}; }));
}

TEST_CASE("flushes that last 0.7 to 1.9 turns: steps become durable one after the other", "[ckptd]") {
    constexpr int nodes = 4;
    constexpr auto turn = 200ms;
    cluster::options o{nodes, "", {}};
    for (int i = 1; i <= nodes; ++i)
        o.before[i] = {"env",
                       "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                       "SLOW_MATCH=.safetensors.tmp",
                       "SLOW_LO=140",
                       "SLOW_HI=380",
                       "SLOW_SEED=" + std::to_string(i)};
    cluster c(o);
    const auto storage = c.dir() + "/store";
    c.open(c.request(7, nodes, 1, storage, 1));
    c.new_step(7, 0, {1, 2, 3, 4});
    auto ranks = start_ranks(c, 7, {1, 2, 3, 4}, 1, 100'000);
    std::set<std::uint64_t> durable;
    constexpr std::uint64_t turns = 24;
    for (std::uint64_t step = 1; step <= turns; ++step) {
        const auto next = banyan::clock::now() + turn;
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        banyan::clock::sleep_until(next);
        if (const auto d = c.session(1, 7)["durable"]; d.is_object())
            durable.insert(d["step"].get<std::uint64_t>());
    }
    INFO("durable: " << durable.size() << ", newest " << (durable.empty() ? 0 : *durable.rbegin()) << '\n'
                     << c.printed());
    CHECK(durable.size() >= turns / 4);
    CHECK(c.counter(1, 7, "flush_failures") == 0);
    CHECK(c.counter(1, 7, "flushes_skipped").get<std::uint64_t>() < turns - durable.size() + 2);
    CHECK(eventually([&] {
        const auto s = c.session(1, 7);
        return s["durable"].is_object() && s["durable"]["step"] == turns;
    }));
    CHECK(eventually([&] { return !holds_flush(storage); }));
    CHECK(verified(storage));
}

TEST_CASE("a milestone is brought to storage out of turn, and stays", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    auto r = c.request(7, 2, 1, storage, 100);
    r.milestone = 300;
    c.open(r);
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    const auto save = [&](std::uint64_t step) {
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
    };
    const auto wait = [&](std::uint64_t step) {
        all_are(ask_all(ranks, fmt::format("wait {} 3 9000", step)), BCK_OK);
    };
    save(100);
    wait(100);
    save(150);
    // By whichever rank, and by several; it may be asked for before all have saved.
    CHECK(ranks[1].ask("milestone 170 best") == BCK_OK);
    CHECK(ranks[1].ask("milestone 170 best") == BCK_OK);
    save(170);
    wait(170);
    CHECK(ranks[0].ask("milestone 170 UPPER") == BCK_E_INVALID);
    for (std::uint64_t step = 200; step <= 800; step += 100) {
        save(step);
        wait(step);
    }
    const auto step = [](std::uint64_t number) { return fmt::format("step-{:012}", number); };
    const std::vector<std::string> kept{"OWNER.1", "latest",  "milestones", step(170),
                                        step(300), step(600), step(700),    step(800)};
    CHECK(eventually([&] { return names(storage) == kept; }));
    CHECK(names(storage + "/milestones") == std::vector<std::string>{"best", "step-300", "step-600"});
    // A thousand wishes for what never comes make one task.
    for (int i = 0; i < 1000; ++i) REQUIRE(ranks[0].ask("milestone 999999 never") == BCK_OK);
    save(900);
    wait(900);
}

TEST_CASE("a job that writes nothing to storage has no milestones", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(7, 1, 1, "", 0));
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1}, 1, 100'000);
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    CHECK(ranks[0].ask("milestone 1 best") == BCK_E_INVALID);
    CHECK(ranks[0].ask("error").find("no step is ever durable") != std::string::npos);
}

TEST_CASE("storage that is much slower than the saves is told", "[ckptd]") {
    cluster::options o{1, "", {}};
    const auto gate = banyan::testing::scratch_path("gate").string();
    std::ofstream{gate};
    o.before[1] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                   "SLOW_MATCH=.safetensors.tmp", "SLOW_GATE=" + gate};
    cluster c(o);
    c.open(c.request(7, 1, 1, c.dir() + "/store", 1));
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1}, 1, 100'000);
    // From whichever step the first flush is: it takes the newest when its folder is made.
    int step = 0;
    CHECK(eventually([&] {
        const auto next = std::to_string(++step);
        return ranks[0].ask("save " + next) == BCK_OK && ranks[0].ask("wait " + next + " 1 5000") == BCK_OK &&
               c.printed("more slowly than they are asked for") == 1;
    }));
    fs::remove(gate);
    // What was skipped is caught up by the newest.
    CHECK(ranks[0].ask("wait " + std::to_string(step) + " 3 9000") == BCK_OK);
    CHECK(eventually([&] { return !holds_flush(c.dir() + "/store"); }));
    CHECK(fs::exists(c.dir() + fmt::format("/store/step-{:012}/COMMIT", step)));
}

TEST_CASE("a flush of an older generation that wakes up late changes nothing", "[ckptd]") {
    const auto gate = banyan::testing::scratch_path("gate").string();
    std::ofstream{gate};
    // Where it stops: before the flush's folder, before a file, before COMMIT.
    const std::string match = GENERATE(as<std::string>(), ".flush.", ".rank-000001", "COMMIT");
    cluster::options o{4, "", {}};
    o.before[1] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"), "SLOW_MATCH=" + match,
                   "SLOW_GATE=" + gate};
    cluster c(o);
    const auto storage = c.dir() + "/store";
    const auto open = [&](std::uint32_t restart, std::vector<int> on) {
        auto r = c.request(7, 2, 2, storage, 10);
        r.restart = restart;
        r.spares.clear();
        for (std::size_t i = 0; i < 2; ++i) {
            r.nodes[i].name = c.name(on[i]);
            r.nodes[i].addr = c.addr(on[i]);
        }
        c.open(r);
        c.new_step(7, 0, on);
    };
    const auto save_to = [&](std::vector<rank_process>& ranks, int last) {
        for (int step = 1; step <= last; ++step) {
            all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
            all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 5000"), BCK_OK);
        }
    };
    {
        open(0, {1, 2});
        auto ranks = start_ranks(c, 7, {1, 2}, 2, 1 << 20);
        all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
        save_to(ranks, 10);
        all_are(ask_all(ranks, "wait 10 3 300"), BCK_E_TIMEOUT);
    }
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    // Else the job would begin from their memory.
    for (const int node : {1, 2}) ::kill(c.pid(node), SIGSTOP);
    {
        open(1, {3, 4});
        auto ranks = start_ranks(c, 7, {3, 4}, 2, 1 << 20);
        save_to(ranks, 10);
        all_are(ask_all(ranks, "wait 10 3 9000"), BCK_OK);
    }
    const auto manifest = banyan::read_file(storage + "/step-000000000010/MANIFEST.json", 1 << 20);
    // Of what the stopped daemons were at only a name by which they look may still lie there.
    auto before = names(storage);
    std::erase_if(before, [](const auto& name) { return name.starts_with(".banyan-probe"); });
    for (const int node : {1, 2}) ::kill(c.pid(node), SIGCONT);
    fs::remove(gate);
    CHECK(eventually([&] { return c.counter(1, 7, "flush_failures").get<int>() > 0; }));
    CHECK(eventually([&] { return names(storage) == before; }));
    CHECK(*banyan::read_file(storage + "/step-000000000010/MANIFEST.json", 1 << 20) == *manifest);
    CHECK(names(storage + "/step-000000000010").size() == 6);
    CHECK(verified(storage));
}

TEST_CASE("a flush under way has the ranks of its launch, whatever a requeue asks for", "[ckptd]") {
    const auto gate = banyan::testing::scratch_path("gate").string();
    std::ofstream{gate};
    cluster::options o{3, "", {}};
    o.before[2] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                   "SLOW_MATCH=.rank-000001", "SLOW_GATE=" + gate};
    cluster c(o);
    const auto storage = c.dir() + "/store";
    c.open(c.request(7, 2, 1, storage, 10));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    all_are(ask_all(ranks, "save 10"), BCK_OK);
    all_are(ask_all(ranks, "wait 10 2 9000"), BCK_OK);
    const auto written = [&] {
        for (const auto& e : fs::recursive_directory_iterator(storage))
            if (e.path().filename() == "rank-000000.safetensors") return true;
        return false;
    };
    REQUIRE(eventually(written));
    // With more ranks, before any of them is there.
    auto r = c.request(7, 3, 1, storage, 10);
    r.restart = 1;
    r.self = c.name(1);
    const auto opened = ckpt::session_open(c.socket(1), r, 10s);
    if (!opened) FAIL(opened.error().text());
    fs::remove(gate);
    CHECK(eventually([&] { return fs::exists(storage + "/step-000000000010/COMMIT"); }));
    CHECK(verified(storage));
}

TEST_CASE("a shard that is damaged while storage keeps it comes from the other node", "[ckptd]") {
    const gate g;
    cluster c(g.on({1}, 2));
    c.open(c.request(7, 2, 1, c.dir() + "/store", 1));
    auto ranks = start_ranks(c, 7, {1, 2});
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 9000"), BCK_OK);
    REQUIRE(eventually([&] { return holds_flush(c.dir() + "/store"); }));
    pass(500ms);  // node 1 has begun to write, and stands still
    CHECK(std::stoi(ranks[0].ask("scribble bytes")) > 0);
    for (auto& r : ranks) r.kill();
    c.new_step(7, 1, {1, 2});
    auto again = start_ranks(c, 7, {1, 2});
    for (auto& r : again) r.say("restart");
    CHECK(eventually([&] { return c.counter(1, 7, "damaged_memory") != 0; }));
    CHECK(again[0].hear() == restored_state{.step = 1, .source = BCK_FROM_PEER});
    CHECK(again[1].hear() == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    CHECK(c.counter(1, 7, "damaged_memory") == 1);
    g.open();
    all_are(ask_all(again, "save 2"), BCK_OK);
    all_are(ask_all(again, "wait 2 3 15000"), BCK_OK);
}

}  // namespace test_ckptd_storage
