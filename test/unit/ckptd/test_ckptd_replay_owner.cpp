// SPDX-License-Identifier: BSD-3-Clause
//
// A crash after each single operation on the claim of a directory: it is never nobody's once it was
// somebody's, whoever was told that it is his has it, and a beat changes nothing but the beat.
#include <filesystem>
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "crash_model.hpp"
#include "steps.hpp"

namespace test_ckptd_replay_owner {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

using survives = crash_model::survives;

owner_record owner_of(const std::string& dir) {
    const auto seen = read_owner(self(), dir);
    if (!seen) FAIL(seen.error().text());
    REQUIRE(*seen);
    return **seen;
}

const std::map<std::string, std::string> two_nodes{{"n1", "10.0.0.1"}, {"n2", "fd00::2"}};

claim taken(const std::string& dir, std::uint64_t job, std::uint64_t generation) {
    claim wanted{dir, 0, job, generation, "n1", 1000, 0};
    wanted.nodes = two_nodes;
    const auto seen = read_owner(self(), dir);
    REQUIRE(seen);
    const auto c = take_claim(self(), wanted, *seen);
    REQUIRE(c);
    return *c;
}

}  // namespace

TEST_CASE("a crash after any operation of a beat: the old one or the new one", "[ckptd]") {
    const temporary t;
    auto c = taken(t.dir(), 12, 3);
    const bool ends = GENERATE(false, true);
    const auto before = owner_of(t.dir());
    auto after = before;
    if (ends)
        after.released = true;
    else
        after.beat = 1;
    owner_record at_last;
    const auto operations = crash_model::replay(
        t.dir(), [&] { REQUIRE((ends ? release_claim(self(), c) : beat_claim(self(), c))); },
        [&](const std::string& crashed, survives how) {
            const auto now = owner_of(crashed);
            CHECK((now == before || now == after));
            if (how == survives::synced) at_last = now;
        });
    CHECK(operations >= 2);
    CHECK(at_last == after);
}

TEST_CASE("a crash after any operation of other nodes in a claim: whose it is stays", "[ckptd]") {
    const temporary t;
    auto c = taken(t.dir(), 12, 3);
    const auto before = owner_of(t.dir());
    CHECK(before.nodes == two_nodes);
    c.nodes.erase("n2");
    crash_model::replay(
        t.dir(), [&] { REQUIRE(rewrite_nodes(self(), c)); },
        [&](const std::string& crashed, survives) {
            auto now = owner_of(crashed);
            CHECK((now.nodes == two_nodes || now.nodes == c.nodes));
            now.nodes = before.nodes;
            CHECK(now == before);
        });
    CHECK(owner_of(t.dir()).nodes == c.nodes);
}

TEST_CASE("a crash after any operation of a claim's change of hands: never nobody's", "[ckptd]") {
    const temporary t;
    const auto other = GENERATE(12u, 13u);  // a newer start of the same job, or another one
    auto first = taken(t.dir(), 12, 3);
    if (other != 12) REQUIRE(release_claim(self(), first));
    const auto before = owner_of(t.dir());
    owner_record at_last;
    std::size_t unwritten = 0;
    crash_model::replay(
        t.dir(), [&] { taken(t.dir(), other, 4); },
        [&](const std::string& crashed, survives how) {
            const auto now = owner_of(crashed);
            const bool is_new = now.number == 2 && now.job == other && now.generation == 4;
            const bool being_written = now.number == 2 && now.job == 0;
            CHECK((now == before || is_new || being_written));
            // Half of a claim is watched before it is taken over, whoever comes.
            if (being_written) {
                ++unwritten;
                CHECK(judge_owner(now, other, 4) == claim_verdict::watch);
            }
            if (is_new) CHECK(now.nodes == two_nodes);
            if (how == survives::synced) at_last = now;
            // And whoever takes it over then has it.
            const auto next = taken(crashed, 14, 1);
            CHECK(check_claim(self(), next));
            CHECK(owner_of(crashed).job == 14);
        });
    CHECK(unwritten > 0);
    CHECK(at_last.job == other);
    CHECK(at_last.generation == 4);
}

TEST_CASE("whoever takes a claim away at any moment ends nothing but what belongs to it", "[ckptd]") {
    const temporary t;
    const auto take_away = [&] {
        for (const auto& e : fs::directory_iterator(t.dir()))
            if (e.path().filename().string().starts_with("OWNER.")) fs::remove(e.path());
    };
    using act = std::function<bool(claim&)>;
    const auto other_job = [&](claim& c) {
        const auto seen = read_owner(self(), t.dir());
        auto wanted = c;
        wanted.job = 13;
        return seen && take_claim(self(), wanted, *seen).has_value();
    };
    const std::vector<act> all{other_job, [&](claim& c) { return beat_claim(self(), c).has_value(); },
                               [&](claim& c) { return rewrite_nodes(self(), c).has_value(); },
                               [&](claim& c) { return open_flush(self(), c).has_value(); },
                               [&](claim& c) { return release_claim(self(), c).has_value(); }};
    for (std::size_t which = 0; which < all.size(); ++which) {
        bool done = false;
        for (std::size_t moment = 0; !done; ++moment) {
            auto c = taken(t.dir(), 12, 3);
            std::size_t at = 0;
            crash_model model(t.dir());
            model.watch([&](const std::string&) {
                if (at++ == moment) take_away();
            });
            const bool succeeded = all[which](c);
            done = at <= moment;  // it has fewer operations
            INFO("act " << which << ", moment " << moment);
            if (done) CHECK(succeeded);
            REQUIRE(moment < 100);
        }
    }
}

}  // namespace test_ckptd_replay_owner
