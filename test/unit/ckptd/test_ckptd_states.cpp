// SPDX-License-Identifier: BSD-3-Clause
//
// Two states of the same processes, each with steps of its own.
#include <filesystem>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"
#include "common/file.hpp"
#include "common/wire.hpp"
#include "test/built.hpp"

namespace test_ckptd_states {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;
namespace wire = banyan::wire;

namespace {

constexpr std::size_t small = 100'000;

void save(std::vector<rank_process>& ranks, int step, int level = 2) {
    all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
    all_are(ask_all(ranks, fmt::format("wait {} {} 9000", step, level)), BCK_OK);
}

void save_in(std::vector<rank_process>& ranks, const std::string& state, int step, int level = 2) {
    all_are(ask_all(ranks, fmt::format("in {} save {}", state, step)), BCK_OK);
    all_are(ask_all(ranks, fmt::format("in {} wait {} {} 9000", state, step, level)), BCK_OK);
}

/// The named state of a job on a node, as status tells it.
json state_on(const cluster& c, int node, std::uint64_t job, const std::string& name) {
    const auto session = c.session(node, job);
    if (session.is_object() && session.contains("states"))
        for (const auto& one : session["states"])
            if (one["name"] == name) return one;
    return {};
}

bool has_step(const std::string& dir, int step) {
    return fs::exists(fmt::format("{}/step-{:012}/COMMIT", dir, step));
}

}  // namespace

TEST_CASE("two states of the same ranks have steps of their own", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 2, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 2, small);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "in ema restart"), not_restored(BCK_E_NOTFOUND));
    save_in(ranks, "ema", 3);
    for (int step = 1; step <= 12; ++step) save(ranks, step);
    for (const int node : {1, 2}) {
        CHECK(c.session(node, 7)["committed"]["step"] == 12);
        const auto ema = state_on(c, node, 7, "ema");
        CHECK(ema["committed"]["step"] == 3);
        CHECK(ema["replicated"] == true);
    }
    SECTION("and each is there in the next launch") {
        for (auto& r : ranks) r.kill();
        c.new_step(7, 1, {1, 2});
        auto again = start_ranks(c, 7, {1, 2}, 2, small);
        all_are(ask_all(again, "in ema restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
        all_are(ask_all(again, "restart"), restored_state{.step = 12, .source = BCK_FROM_LOCAL});
        save_in(again, "ema", 4);
        save(again, 13);
    }
    SECTION("and one goes on below what it has saved, which makes none of that safe") {
        save_in(ranks, "ema", 100);
        for (auto& r : ranks) r.kill();
        c.new_step(7, 1, {1, 2});
        auto again = start_ranks(c, 7, {1, 2}, 2, small);
        all_are(ask_all(again, "restart"), restored_state{.step = 12, .source = BCK_FROM_LOCAL});
        all_are(ask_all(again, "in ema restart"), restored_state{.step = 100, .source = BCK_FROM_LOCAL});
        CHECK(again[0].ask("in ema save 13") == BCK_OK);
        CHECK(again[0].ask("in ema wait 13 1 200") == BCK_E_TIMEOUT);  // the others have not saved it
        for (std::size_t i = 1; i < again.size(); ++i) CHECK(again[i].ask("in ema save 13") == BCK_OK);
        all_are(ask_all(again, "in ema wait 13 1 9000"), BCK_OK);
    }
    SECTION("and a step of one is not newer than one of the other") {
        save_in(ranks, "ema", 100);
        save(ranks, 13);
        for (auto& r : ranks) r.kill();
        c.new_step(7, 1, {1, 2});
        auto again = start_ranks(c, 7, {1, 2}, 2, small);
        all_are(ask_all(again, "restart"), restored_state{.step = 13, .source = BCK_FROM_LOCAL});
        all_are(ask_all(again, "in ema restart"), restored_state{.step = 100, .source = BCK_FROM_LOCAL});
    }
}

TEST_CASE("a process that is started again takes every state back, each to its own step", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    for (int step = 1; step <= 4; ++step) save(ranks, step);
    save_in(ranks, "ema", 2);
    SECTION("whichever it asks for first") {
        ranks.pop_back();
        ranks.emplace_back(c, 2, 7, 1, 2, small);
        CHECK(ranks[1].ask("restart") == restored_state{.step = 4, .source = BCK_FROM_LOCAL});
        // Both of the one that lives went back, though the new process has not asked for the second one.
        CHECK(ranks[0].ask("save 5") == BCK_E_STALE);
        CHECK(eventually([&] { return ranks[0].ask("in ema wait 2 1 0") == BCK_E_STALE; }));
        CHECK(ranks[0].ask("restart") == restored_state{.step = 4, .source = BCK_FROM_LOCAL});
        CHECK(ranks[0].ask("in ema restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
        CHECK(ranks[1].ask("in ema restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
        save(ranks, 5);
        save_in(ranks, "ema", 5);
    }
    SECTION("and no other one gets a rank's second state while it lives") {
        rank_process other(c, 2, 7, 1, 2, small);
        CHECK(other.ask("in late restart") == BCK_E_REFUSED);
        CHECK(other.ask("error").find("rank 1 is held by process") != std::string::npos);
        save_in(ranks, "ema", 5);
    }
    SECTION("and a process that goes back in one stays where it is in the other") {
        ranks[1].say("in ema restart");
        CHECK(ranks[1].hear() == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
        CHECK(eventually([&] { return ranks[0].ask("in ema wait 2 1 0") == BCK_E_STALE; }));
        save(ranks, 5);
        CHECK(ranks[0].ask("in ema restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
        save_in(ranks, "ema", 6);
    }
}

TEST_CASE("a daemon whose ranks have not asked for a state yet takes part in it", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    CHECK(ranks[0].ask("in ema restart") == not_restored(BCK_E_NOTFOUND));
    CHECK(state_on(c, 2, 7, "ema")["name"] == "ema");
    CHECK(ranks[0].ask("in ema save 1") == BCK_OK);
    CHECK(ranks[0].ask("in ema wait 1 1 300") == BCK_E_TIMEOUT);  // the other rank's is missing
    CHECK(ranks[1].ask("in ema save 1") == BCK_OK);
    all_are(ask_all(ranks, "in ema wait 1 2 9000"), BCK_OK);
    save(ranks, 1);
}

TEST_CASE("a state has its place in storage, and begins from there", "[ckptd]") {
    cluster c({2, "", {}});
    const auto store = c.dir() + "/store", ema = store + "/states/ema";
    c.open(c.request(7, 2, 1, store, 2));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    for (int step = 1; step <= 4; ++step) save(ranks, step);
    all_are(ask_all(ranks, "wait 4 3 9000"), BCK_OK);
    save_in(ranks, "ema", 2, 3);
    CHECK(has_step(store, 4));
    CHECK(has_step(ema, 2));
    CHECK_FALSE(has_step(ema, 4));
    CHECK(fs::exists(ema + "/OWNER.1"));
    // What neither has in storage gets there when the job leaves.
    save(ranks, 5);
    save_in(ranks, "ema", 3);
    all_are(ask_all(ranks, "finalize 0"), BCK_OK);  // their end is no death
    for (auto& r : ranks) r.kill();
    CHECK_FALSE(has_step(store, 5));
    CHECK_FALSE(has_step(ema, 3));
    SECTION("left by a job that ends") {
        for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
        CHECK(eventually([&] { return has_step(store, 5) && has_step(ema, 3); }));
    }
    SECTION("brought there by who closes the session") {
        for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 7, node == 1, 20s));
        CHECK(has_step(store, 5));
        CHECK(has_step(ema, 3));
    }
    c.open(c.request(8, 2, 1, store, 2));
    c.new_step(8, 0, {1, 2});
    auto next = start_ranks(c, 8, {1, 2}, 1, small);
    all_are(ask_all(next, "restart"), restored_state{.step = 5, .source = BCK_FROM_STORAGE});
    all_are(ask_all(next, "in ema restart"), restored_state{.step = 3, .source = BCK_FROM_STORAGE});
    save(next, 6, 3);
    save_in(next, "ema", 4, 3);
}

TEST_CASE("bck_finalize brings every state to storage, and ends them", "[ckptd]") {
    cluster c({2, "", {}});
    const auto store = c.dir() + "/store";
    c.open(c.request(7, 2, 1, store, 1000));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    save(ranks, 4);
    save_in(ranks, "ema", 2);
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    CHECK(has_step(store, 4));
    CHECK(has_step(store + "/states/ema", 2));
    all_are(ask_all(ranks, "in ema save 3"), BCK_E_INVALID);
    for (auto& r : ranks) r.kill();
    CHECK(state_on(c, 1, 7, "ema")["counters"]["deaths"] == 0);
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    for (const int node : {1, 2}) CHECK(c.session(node, 7).is_null());
}

TEST_CASE("a state for which the job has no memory is refused with the numbers of each", "[ckptd]") {
    cluster c({2, "job_memory_limit = \"70M\"\n", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2});
    for (int step = 1; step <= 3; ++step) save(ranks, step);
    const auto refused = ranks[1].ask("in ema save 1");
    CHECK(refused == BCK_E_MEMORY);
    const auto why = ranks[1].ask("error");
    INFO(why);
    CHECK(why.find("rank 1 needs 2") != std::string::npos);
    CHECK(why.find("without a name, 0 B of state ema) of its 70") != std::string::npos);
    for (int step = 4; step <= 8; ++step) save(ranks, step);
    CHECK(c.session(1, 7)["replicated"] == true);
}

TEST_CASE("states are named where an operator looks", "[ckptd]") {
    cluster c({1, "", {}});
    const auto store = c.dir() + "/store";
    c.open(c.request(7, 1, 1, store, 1));
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1}, 1, small);
    save(ranks, 4, 3);
    save_in(ranks, "ema", 2, 3);
    const auto output = [&](const std::string& arguments) {
        const auto out = c.dir() + "/cli.out";
        const auto command = fmt::format("{} --config {}/banyan.conf --node n1 {} > {} 2>&1",
                                         banyan::testing::built("banyan-ckpt"), c.dir(), arguments, out);
        CHECK(std::system(command.c_str()) == 0);
        return banyan::read_file(out, 1 << 20).value_or("");
    };
    const auto status = output("status");
    INFO(status);
    CHECK(status.find("job 7: open, 1 of 1 ranks") != std::string::npos);
    CHECK(status.find("job 7, state ema: open, 1 of 1 ranks") != std::string::npos);
    const auto watched = output("watch --count 1");
    INFO(watched);
    CHECK(watched.find("job 7        open      memory 4") != std::string::npos);
    CHECK(watched.find("job 7        /ema      memory 2") != std::string::npos);
    CHECK(output("show " + store).find("state ema: newest step 2, in " + store + "/states/ema") !=
          std::string::npos);
    CHECK(json::parse(output("show --json " + store))["states"] == json::array({"ema"}));
    CHECK(output("show " + store + "/states/ema").find("           2  complete") != std::string::npos);
}

TEST_CASE("names that are none, and one state too many, are refused", "[ckptd]") {
    cluster c({2, "restore_timeout = \"2s\"\n", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    const std::vector<std::string> none{"Ema", "..",  "a/b",      "-a",
                                        "_a",  "a.b", "\xc3\xa9", std::string(33, 'a')};
    for (const auto& name : none) {
        INFO(name);
        CHECK(ranks[0].ask("open " + name) == BCK_E_INVALID);
        CHECK(ranks[0].ask("error").find("is no name of a state") != std::string::npos);
    }
    const std::string longest(32, 'a');
    CHECK(ranks[0].ask("open " + longest) == BCK_OK);
    for (const std::string& name : {std::string("b-1"), std::string("0_c"), longest}) save_in(ranks, name, 1);
    SECTION("by the process that has its four") {
        save_in(ranks, "d", 1);
        CHECK(ranks[0].ask("open e") == BCK_E_INVALID);
        CHECK(ranks[0].ask("error").find("this process has opened four") != std::string::npos);
        CHECK(ranks[0].ask("in d save 2") == BCK_OK);
    }
    SECTION("by another one, on a node where the job has its four") {
        save_in(ranks, "d", 1);
        for (auto& r : ranks) r.kill();
        c.new_step(7, 1, {1, 2});
        ranks = start_ranks(c, 7, {1, 2}, 1, small);
        for (const char* what : {"in e restart", "in e save 1"}) {
            CHECK(ranks[0].ask(what) == BCK_E_REFUSED);
            const auto why = ranks[0].ask("error");
            INFO(why);
            CHECK(why.find("job 7 has 4 named states (0_c, " + longest + ", b-1, d), and may have 4") !=
                  std::string::npos);
        }
        return;
    }
    SECTION("on another one, which has its four") {
        // Each node takes its own fourth, and tells the other one of it too late.
        ranks[0].say("in d restart");
        ranks[1].say("in e restart");
        const auto first = ranks[0].hear(), second = ranks[1].hear();
        CHECK((first == not_restored(BCK_E_NOTFOUND) || first == BCK_E_REFUSED));
        CHECK((second == not_restored(BCK_E_NOTFOUND) || second == BCK_E_REFUSED));
        CHECK((first == BCK_E_REFUSED || second == BCK_E_REFUSED));
    }
    save(ranks, 1);
    save_in(ranks, "b-1", 2);
}

TEST_CASE("whoever names states as he likes gets no more than these, and harms nobody", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(7, 1, 1, "", 0));
    c.new_step(7, 0, {1});
    const auto soon = [] { return banyan::clock::now() + 3s; };
    const auto attach = [&](const json& state) {
        auto fd = wire::connect_unix(c.socket(1), soon());
        REQUIRE(fd);
        const json meta = attach_of(7, 0, 1, 1000, {{"state", state}});
        auto reply =
            wire::call(fd->get(), static_cast<std::uint16_t>(ckpt::message::attach_state), meta, soon());
        return reply ? std::string() : reply.error().what;
    };
    for (const json& name : {json(""), json("../../etc"), json("A"), json(std::string(3000, 'a')), json(7),
                             json(nullptr), json::array({"a"}), json("a\nb")}) {
        INFO(name.dump());
        CHECK_FALSE(attach(name).empty());
    }
    CHECK_FALSE(c.session(1, 7).contains("states"));
    for (int i = 0; i < 300; ++i) (void)attach(fmt::format("s{}", i));
    CHECK(c.session(1, 7)["states"].size() == 4);
    // A connection is of the state that it came for.
    auto fd = wire::connect_unix(c.socket(1), soon());
    REQUIRE(fd);
    const auto on_one = [&](ckpt::message type, json meta) {
        meta.update(attach_of(7, 0, 1, 1000));
        return wire::call(fd->get(), static_cast<std::uint16_t>(type), meta, soon()).has_value();
    };
    CHECK(on_one(ckpt::message::attach_state, {{"state", "s1"}}));
    CHECK_FALSE(on_one(ckpt::message::attach_state, {{"state", "s2"}}));
    CHECK_FALSE(on_one(ckpt::message::attach, json::object()));
    fd->reset();
    auto ranks = start_ranks(c, 7, {1}, 1, small);
    save(ranks, 1, 1);
    save_in(ranks, "s0", 1, 1);
}

TEST_CASE("no state is opened between a requeue and its launch", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(7, 3, 1, "", 0));
    c.new_step(7, 0, {1, 2, 3});
    auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, small);
    save(ranks, 1);
    auto r = c.request(7, 3, 1, "", 0);
    r.restart = 1;
    std::swap(r.nodes[1].name, r.nodes[2].name);
    std::swap(r.nodes[1].addr, r.nodes[2].addr);
    c.open(r);
    // It would be in the launch that is over, with the slots of the next one.
    CHECK(ranks[0].ask("in ema restart") == BCK_E_REFUSED);
    CHECK(ranks[0].ask("error").find("job 7 is in no launch") != std::string::npos);
    CHECK_FALSE(c.session(1, 7).contains("states"));
    for (auto& one : ranks) one.kill();
    c.new_step(7, 0, {1, 3, 2});
    auto again = start_ranks(c, 7, {1, 3, 2}, 1, small);
    all_are(ask_all(again, "in ema restart"), not_restored(BCK_E_NOTFOUND));
    save_in(again, "ema", 1);
}

}  // namespace test_ckptd_states
