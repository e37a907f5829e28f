// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/agreement/agreement.hpp"
#include "test/simulator/world.hpp"

using namespace banyan::ckpt;
using agreement::commit;
using agreement::level;
using agreement::shelf;

namespace {

constexpr std::uint64_t round_one = 1u << round_bits, round_two = round_one + 1;

/// Of one to six nodes, with one to eight faults, whose launches leave nodes that live and come back to them.
simulator::settings some_settings(std::uint64_t seed) {
    simulator::settings s;
    s.slots = static_cast<std::uint32_t>(1 + seed % 6);
    s.spares = static_cast<std::uint32_t>(1 + seed / 5 % (s.slots + 1));
    s.moves = true;
    s.claims = seed % 3 != 0;
    s.faults = static_cast<int>(1 + seed / 6 % 8);
    s.waits = seed % 4 == 0 ? 0 : 20;
    return s;
}

struct sums {
    std::uint64_t commits = 0, releases = 0, relaunches = 0, restored_older = 0;
    std::vector<std::string> breaches;
};

sums simulate(std::uint64_t first, std::uint64_t count) {
    sums out;
    for (auto seed = first; seed < first + count && out.breaches.size() < 10; ++seed) {
        const auto o = simulator::run(seed, some_settings(seed));
        out.commits += o.commits;
        out.releases += o.releases;
        out.relaunches += o.relaunches;
        out.restored_older += o.restored_older;
        if (!o.breach.empty()) out.breaches.push_back("seed " + std::to_string(seed) + ": " + o.breach);
    }
    return out;
}

void check(const sums& s) {
    for (const auto& breach : s.breaches) UNSCOPED_INFO(breach);
    CHECK(s.breaches.empty());
    // Otherwise nothing was put to the test.
    CHECK(s.commits > 0);
    CHECK(s.releases > 0);
    CHECK(s.relaunches > 0);
    CHECK(s.restored_older > 0);
}

shelf::copy own(shelf::id number, const copy_key& key) {
    shelf::copy c;
    c.number = number;
    c.what = {key, 0};
    c.checked = true;
    return c;
}

agreement::inventory holds(const agreement::ballot& number, std::vector<agreement::held> copies) {
    agreement::inventory out;
    out.number = number;
    out.copies = std::move(copies);
    return out;
}

}  // namespace

TEST_CASE("100,000 schedules of faults: nothing acknowledged is lost, all ranks begin alike", "[ckptd]") {
    check(simulate(1, 100'000));
}

// In two processes, at once where there are two processors.
TEST_CASE("a million schedules of faults, the first half", "[.million-1]") {
    check(simulate(1'000'000, 500'000));
}
TEST_CASE("a million schedules of faults, the second half", "[.million-2]") {
    check(simulate(1'500'000, 500'000));
}

TEST_CASE("schedules that broke an earlier form of the rules", "[ckptd]") {
    struct found {
        std::uint64_t seed;
        std::uint32_t slots;
        int faults;
    };
    const auto [seed, slots, faults] = GENERATE(
        found{8, 3, 4},    // a daemon that has forgotten lets its ranks begin in a round that others train in
        found{234, 3, 4},  // the same, in a round of which it has not heard
        found{107, 3, 4},  // ranks hold different steps that none of them can complete
        found{478, 3, 4},  // a step that is replicated late was let go of by then
        found{178, 3, 4},  // copies for others that their owners have given up fill the room
        found{100032, 2, 6},  // what all began from counts as replicated, too
        found{100815, 4, 6},  // what all began from is overtaken before its second copies are made
        found{500595, 4, 5},  // whoever knew that it is replicated has died
        found{100987, 6, 6},  // a word about a step that is passed over was lost
        found{9263, 6, 8},    // a shard that was brought for one round answered another round's attempt
        found{80398, 5, 8},   // the same
        found{22930, 5, 6},   // a daemon that forgets what it has answered takes part in the same attempt
        found{37295, 6, 8},   // the same
        found{9579, 4, 5});   // the same, and the word that it has forgotten was lost
    simulator::settings s;
    s.slots = slots;
    s.faults = faults;
    CHECK(simulator::run(seed, s).breach == "");
}

TEST_CASE("schedules of launches that move, which broke an earlier form of the rules", "[ckptd]") {
    const std::uint64_t seed = GENERATE(  //
        4163, 10045,    // a question that was not asked in one attempt was not asked in the next
        466, 12646,     // nor in the launch's second round
        29983,          // a step that one holder had damaged was not tried with another's
        1505227,        // a member had lost its part of the newest step, so that nobody asked for the rest
        1602183,        // a daemon voted for a rank that had been on its node a launch ago
        1691708,        // one that had told a later launch what it holds let go of it for a commit of its own
        133, 421,       // what only such a one knew to be replicated was let go of by the members
        1233868,        // who had not heard how far the beginning came was told so by nobody
        14054, 15997,   // the books: what a daemon of an ended launch finds committed is overtaken there
        1487, 1035823,  // the same, and what its round begins from
        2050695);       // the books: nobody is left who knows where the job was
    CHECK(simulator::run(seed, some_settings(seed)).breach == "");
}

TEST_CASE("no attempt of a round has the ballot of another round's", "[ckptd]") {
    // Else what is still being brought for the one would answer the other.
    agreement::launch alone;
    alone.generation = round_one;
    alone.nodes = alone.world = 1;
    alone.slot_of_rank = {0};
    alone.nonce = 7;
    agreement::agreement a;
    std::set<agreement::ballot> asked;
    const auto carry_out = [&](agreement::effects e) {
        for (std::size_t i = 0; i < e.send.size(); ++i) {
            const auto m = e.send[i].second;
            if (const auto* c = std::get_if<agreement::collect>(&m.what)) asked.insert(c->number);
            for (auto next = a.receive(0, m); !next.send.empty() || next.bring;) {
                e.send.insert(e.send.end(), next.send.begin(), next.send.end());
                if (!next.bring) break;
                next = a.brought(next.bring->number, {});
            }
        }
    };
    carry_out(a.open(alone));
    carry_out(a.storage_holds({}));
    REQUIRE(a.has_begun());
    carry_out(a.begin_again());
    REQUIRE(a.generation() == round_two);
    REQUIRE(a.has_begun());
    CHECK(asked.size() == 2);
}

TEST_CASE("a decision is told to all once, then to whoever asks again", "[ckptd]") {
    agreement::vote_counter v(2);
    const copy_key key{round_one, 1}, other{round_one, 2};
    const auto vote = [&](std::uint32_t rank, std::vector<agreement::vote::one> kept) {
        return v.count(round_one, {}, {rank, std::move(kept), 1, 2});
    };
    CHECK(vote(0, {{key, level::memory}, {other, level::memory}}).committed.empty());
    const auto decided = vote(1, {{key, level::memory}});
    CHECK(decided.committed.size() == 1);
    CHECK(decided.passed_over == std::vector{other});
    CHECK(decided.known.empty());
    const auto again = vote(0, {{key, level::memory}, {other, level::memory}});
    CHECK(again.committed.empty());
    CHECK(again.passed_over.empty());
    CHECK(again.known.size() == 2);
}

TEST_CASE("a commit in memory frees no replicated one", "[ckptd]") {
    shelf copies;
    copies.note_release(std::nullopt, std::nullopt, round_one);
    for (std::uint64_t step = 1; step <= 3; ++step) {
        auto c = own(step, {round_one, step});
        c.voted = step == 1 ? level::replicated : level::memory;
        copies.add(c);
    }
    copies.note_commit({round_one, 1}, level::replicated);
    copies.note_commit({round_one, 2}, level::memory);
    CHECK(copies.sweep().empty());
    copies.note_commit({round_one, 3}, level::memory);
    CHECK(copies.sweep() == std::vector<shelf::id>{2});
    copies.note_commit({round_one, 3}, level::replicated);
    CHECK(copies.sweep() == std::vector<shelf::id>{1});
}

TEST_CASE("a copy that may still become replicated outlives a newer commit in memory", "[ckptd]") {
    shelf copies;
    copies.note_release(std::nullopt, std::nullopt, round_one);
    auto promised = own(1, {round_one, 1});
    promised.voted = level::replicated;
    copies.add(promised);
    copies.add(own(2, {round_one, 2}));
    copies.note_commit({round_one, 2}, level::memory);
    CHECK(copies.sweep().empty());
    SECTION("until it is known that it has not") {
        copies.note_commit({round_one, 1}, level::memory);
        CHECK(copies.sweep() == std::vector<shelf::id>{1});
    }
    SECTION("or that some rank has none of it") {
        copies.note_passed_over({round_one, 1});
        CHECK(copies.sweep() == std::vector<shelf::id>{1});
    }
}

TEST_CASE("nothing is chosen before all have answered and storage was looked at", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const agreement::ballot first{1, 7};
    const copy_key newer{round_one, 9}, older{round_one, 8};
    CHECK(c.due().size() == 2);
    c.on(0, holds(first, {{newer, 0}, {older, 0}}));
    c.on(1, holds(first, {{older, 1}}));
    CHECK(c.now() == agreement::coordinator::phase::collecting);
    c.set_storage({});
    REQUIRE(c.now() == agreement::coordinator::phase::preparing);
    CHECK(c.chosen().key == older);

    SECTION("a shard that is nowhere whole: the next one, and never a beginning from nothing") {
        c.on(1, agreement::prepared{first, {1}});
        CHECK(c.now() == agreement::coordinator::phase::collecting);
        const agreement::ballot second{2, 7};
        c.on(0, holds(second, {{older, 0}}));
        c.on(1, holds(second, {{older, 1}}));
        CHECK(c.now() == agreement::coordinator::phase::lost);
    }
    SECTION("nobody goes before all are prepared") {
        c.on(0, agreement::prepared{first, {}});
        CHECK(c.now() == agreement::coordinator::phase::preparing);
        CHECK(c.waits_for() == std::vector<std::uint32_t>{1});
        c.on(1, agreement::prepared{first, {}});
        CHECK(c.now() == agreement::coordinator::phase::releasing);
    }
    SECTION("an answer to another attempt does not count") {
        c.on(0, agreement::prepared{{1, 6}, {}});
        c.on(1, agreement::prepared{{2, 7}, {}});
        CHECK(c.waits_for() == std::vector<std::uint32_t>{0, 1});
    }
}

TEST_CASE("an answer is no reason to ask the others once more", "[ckptd]") {
    agreement::launch l;
    l.generation = round_one;
    l.nodes = l.world = 4;
    l.slot_of_rank = {0, 1, 2, 3};
    l.nonce = 7;
    agreement::agreement a;
    const auto asked = a.open(l).send;
    REQUIRE(asked.size() == 4);
    const auto number = std::get<agreement::collect>(asked[0].second.what).number;
    CHECK(a.storage_holds({}).send.empty());
    for (const std::uint32_t slot : {0u, 1u, 2u}) {
        const auto e = a.receive(slot, {round_one, holds(number, {})});
        CHECK(e.send.empty());
    }
    CHECK(a.tick().send.size() == 1);
    CHECK(a.receive(3, {round_one, holds(number, {})}).send.size() == 4);  // what to begin from
    CHECK(a.receive(3, {round_one, agreement::prepared{number, {}}}).send.empty());
}

TEST_CASE("a daemon takes part only with what it has said in this life", "[ckptd]") {
    const agreement::ballot number{1, 7};
    const shelf nothing;
    agreement::member m(2, true);
    // A question that was on its way when the daemon before it ended; the answer may be lost.
    REQUIRE(m.on(agreement::collect{number}, nothing).answer);
    agreement::prepare p{number, {}, 1};
    const auto said = m.on(p, nothing);
    CHECK_FALSE(said.bring);
    REQUIRE(said.answer);
    REQUIRE(std::holds_alternative<agreement::inventory>(*said.answer));
    CHECK(std::get<agreement::inventory>(*said.answer).life == 2);
    p.life = 2;
    CHECK(m.on(p, nothing).bring);
}

TEST_CASE("what nodes outside of the assignment hold is chosen, and is all that is new", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const agreement::ballot first{1, 7};
    const copy_key newer{round_one, 9}, older{round_one, 8};
    c.on(0, holds(first, {{newer, 0}, {older, 0}}));
    c.on(1, holds(first, {{older, 1}}));
    CHECK_FALSE(c.newest_if_whole());
    c.on(2, holds({}, {{newer, 1}}));
    c.set_storage({});
    REQUIRE(c.now() == agreement::coordinator::phase::preparing);
    CHECK(c.chosen().key == newer);
    CHECK(c.chosen().holders == std::vector<std::vector<std::uint32_t>>{{0}, {2}});
    // Gone when it was to be fetched: the next one, which all have.
    c.on(0, agreement::prepared{first, {}});
    c.on(1, agreement::prepared{first, {1}});
    const agreement::ballot second{2, 7};
    c.on(0, holds(second, {{newer, 0}, {older, 0}}));
    c.on(1, holds(second, {{older, 1}}));
    CHECK(c.chosen().key == older);
}

TEST_CASE("what nodes outside know to be replicated is not forgotten", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const agreement::ballot first{1, 7};
    const copy_key newest{round_one, 9}, theirs{round_one, 8}, ours{round_one, 7};
    auto one = holds(first, {{newest, 0}, {theirs, 0}}), other = holds(first, {{newest, 1}, {theirs, 1}}),
         outside = holds({}, {{newest, 0}});
    one.replicated = ours;
    outside.replicated = theirs;
    const auto released_with = [&] {
        c.on(0, one);
        c.on(1, other);
        c.on(2, outside);
        c.set_storage({});
        c.on(0, agreement::prepared{first, {}});
        c.on(1, agreement::prepared{first, {}});
        return std::get<agreement::release>(c.due().at(0).what).replicated;
    };
    SECTION("else the members would free what is left of it") { CHECK(released_with() == theirs); }
    SECTION("but nothing that is no longer whole") {
        other.copies.pop_back();
        CHECK(released_with() == ours);
    }
    SECTION("nor from another round than what all begin from") {
        const copy_key later{round_two, 1};
        one.copies.push_back({later, 0});
        other.copies.push_back({later, 1});
        CHECK(released_with() == ours);
    }
    SECTION("nor what is newer than that") {
        outside.replicated = copy_key{round_one, 10};
        CHECK(released_with() == ours);
    }
}

TEST_CASE("nodes outside are asked where a member had a part of something newer", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const copy_key newer{round_one, 9}, older{round_one, 8};
    auto one = holds({1, 7}, {{older, 0}, {older, 1}});
    SECTION("and has lost it") {
        one.had = newer;
        c.on(0, one);
        c.on(1, holds({1, 7}, {}));
        CHECK_FALSE(c.newest_if_whole());
    }
    SECTION("not where what it had is there") {
        one.had = older;
        c.on(0, one);
        c.on(1, holds({1, 7}, {}));
        CHECK(c.newest_if_whole() == older);
    }
}

TEST_CASE("a daemon tells of the newest part that it had", "[ckptd]") {
    shelf copies;
    CHECK_FALSE(copies.newest_part());
    copies.note_release(copy_key{round_one, 5}, std::nullopt, round_two);
    CHECK(copies.newest_part() == copy_key{round_one, 5});
    // A vote is a promise: others may have heard of the commit.
    auto c = own(1, {round_two, 6});
    c.voted = level::memory;
    copies.add(c);
    CHECK(copies.newest_part() == copy_key{round_one, 5});
    copies.lose(1);
    CHECK(copies.newest_part() == copy_key{round_two, 6});
}

TEST_CASE("a daemon votes for no rank that has gone elsewhere", "[ckptd]") {
    const auto votes = [](std::uint32_t slot_of_rank_0) {
        agreement::launch l;
        l.generation = round_one;
        l.nodes = l.world = 2;
        l.slot_of_rank = {slot_of_rank_0, 1 - slot_of_rank_0};
        l.nonce = 7;
        agreement::agreement a;
        a.add(own(1, {round_one - 1, 9}));
        const auto number = std::get<agreement::collect>(a.open(l).send.at(0).second.what).number;
        const auto receive = [&](std::uint32_t from, agreement::body what) {
            return a.receive(from, {round_one, std::move(what)});
        };
        a.storage_holds({});
        receive(0, holds(number, {{{round_one - 1, 9}, 0}}));
        const auto asked = receive(1, holds(number, {{{round_one - 1, 9}, 1}}));
        const auto what = std::get<agreement::prepare>(asked.send.at(0).second.what).what;
        receive(0, agreement::collect{number});
        receive(0, agreement::prepare{number, what, 7});
        a.brought(number, {});
        receive(0, agreement::release{number, what.key, std::nullopt});
        REQUIRE(a.has_begun());
        return a.safe(1, level::memory).send.size();
    };
    CHECK(votes(0) == 1);
    CHECK(votes(1) == 0);
}

TEST_CASE("what a later launch was told of stays until another is opened", "[ckptd]") {
    agreement::launch l;
    l.generation = round_one;
    l.nodes = l.world = 1;
    l.slot_of_rank = {0};
    l.nonce = 7;
    agreement::agreement a;
    const auto hear = [&](agreement::body what) { return a.receive(0, {round_one, std::move(what)}); };
    const auto number = std::get<agreement::collect>(a.open(l).send.at(0).second.what).number;
    hear(agreement::collect{number});
    hear(agreement::prepare{number, {}, 7});
    a.brought(number, {});
    hear(agreement::release{number, {}, {}});
    REQUIRE(a.has_begun());
    const copy_key older{round_one, 1}, newer{round_one, 2};
    a.add(own(1, older));
    a.add(own(2, newer));
    REQUIRE(a.safe(1, level::memory).send.size() == 1);
    REQUIRE(hear(commit{older, level::memory}).gone.empty());
    const auto later = round_one << 1;

    SECTION("of this launch nothing more is heard or said") {
        CHECK(a.end_launch(later));
        CHECK_FALSE(a.end_launch(later));  // known
        CHECK(hear(commit{newer, level::memory}).gone.empty());
        CHECK(hear(agreement::collect{{number.number + 1, 7}}).send.empty());
        CHECK(a.safe(2, level::memory).send.empty());
        CHECK(a.tick().send.empty());
        CHECK(a.begin_again().send.empty());
        CHECK(a.committed(level::memory) == older);
        CHECK(a.copies().copies().size() == 2);
        // Another one: this node has a part again.
        l.generation = later;
        CHECK(a.open(l).send.size() == 1);
        CHECK(a.end_launch(later << 1));
    }
    SECTION("a question of the same launch, or an older one, ends nothing") {
        CHECK_FALSE(a.end_launch(round_one));
        CHECK_FALSE(a.end_launch(last_round(round_one)));
        CHECK(hear(commit{newer, level::memory}).gone == std::vector<shelf::id>{1});
    }
}

TEST_CASE("nodes outside that were not asked are asked when what made it needless is gone", "[ckptd]") {
    agreement::launch l;
    l.generation = round_one;
    l.nodes = l.world = 2;
    l.slot_of_rank = {0, 1};
    l.nonce = 7;
    agreement::agreement a;
    const copy_key newest{round_one - 1, 9}, older{round_one - 1, 8};
    auto generation = round_one;
    auto number = std::get<agreement::collect>(a.open(l).send.at(0).second.what).number;
    const auto receive = [&](std::uint32_t from, agreement::body what) {
        return a.receive(from, {generation, std::move(what)});
    };
    receive(0, holds(number, {{newest, 0}, {older, 0}}));
    receive(1, holds(number, {{newest, 1}, {older, 1}}));
    REQUIRE(a.coordinating()->newest_if_whole() == newest);
    CHECK_FALSE(a.asks_outside());  // what storage holds comes first
    a.storage_holds({}, std::nullopt);
    REQUIRE(a.coordinating()->now() == agreement::coordinator::phase::preparing);
    CHECK(a.coordinating()->chosen().key == newest);
    const std::vector outside{holds({}, {{newest, 1}})};

    SECTION("a shard was damaged: the same step, with theirs") {
        receive(1, agreement::prepared{number, {1}});
        ++number.number;
        receive(0, holds(number, {{newest, 0}, {older, 0}}));
        receive(1, holds(number, {{older, 1}}));
        CHECK(a.coordinating()->now() == agreement::coordinator::phase::collecting);
        REQUIRE(a.asks_outside());
        CHECK_FALSE(a.coordinating()->newest_if_whole());
        a.outside_holds(outside);
        CHECK_FALSE(a.asks_outside());
        REQUIRE(a.coordinating()->now() == agreement::coordinator::phase::preparing);
        CHECK(a.coordinating()->chosen().key == newest);
        CHECK(a.coordinating()->chosen().holders == std::vector<std::vector<std::uint32_t>>{{0}, {2}});
        // Neither there: the older one.
        receive(1, agreement::prepared{number, {1}});
        ++number.number;
        receive(0, holds(number, {{newest, 0}, {older, 0}}));
        receive(1, holds(number, {{older, 1}}));
        CHECK(a.coordinating()->chosen().key == older);
    }
    SECTION("a node has lost its memory in the next round") {
        ++generation;
        a.receive(1, {generation, agreement::outbid{}});
        const auto again = a.tick();
        number = {};
        for (const auto& [to, m] : again.send)
            if (const auto* c = std::get_if<agreement::collect>(&m.what)) number = c->number;
        receive(0, holds(number, {{newest, 0}}));
        receive(1, holds(number, {}));
        CHECK(a.coordinating()->now() == agreement::coordinator::phase::collecting);
        REQUIRE(a.asks_outside());
        a.outside_holds(outside);
        CHECK(a.coordinating()->chosen().key == newest);
    }
}

TEST_CASE("a checkpoint that nobody has any more when it is to be brought is no beginning from nothing",
          "[ckptd]") {
    agreement::coordinator c(1, 1, 7);
    c.set_storage({});
    c.on(0, holds({1, 7}, {{{round_one, 9}, 0}}));
    c.on(0, agreement::prepared{{1, 7}, {0}});
    c.on(0, holds({2, 7}, {}));
    CHECK(c.now() == agreement::coordinator::phase::lost);
}

TEST_CASE("a coordinator that begins again asks storage and the nodes outside once more", "[ckptd]") {
    agreement::launch l;
    l.generation = round_one;
    l.nodes = l.world = 2;
    l.slot_of_rank = {0, 1};
    l.nonce = 7;
    agreement::agreement a;
    const copy_key newer{round_one - 1, 9}, older{round_one - 1, 8};
    const auto hear_all = [&](const agreement::effects& asked) {
        const auto number = std::get<agreement::collect>(asked.send.at(0).second.what).number;
        a.receive(0, {round_one, holds(number, {{older, 0}, {older, 1}})});
        return a.receive(1, {round_one, holds(number, {})});
    };
    const std::vector outside{holds({}, {{newer, 0}, {newer, 1}})};
    const auto asked = a.open(l);
    CHECK(a.storage_holds({}, outside).send.empty());
    CHECK(hear_all(asked).send.size() == 2);
    CHECK(a.coordinating()->chosen().key == newer);
    a.recall(8);
    // Else the older step would be chosen before those outside are heard.
    CHECK(hear_all(a.tick()).send.empty());
    a.storage_holds({}, outside);
    CHECK(a.coordinating()->chosen().key == newer);
}

TEST_CASE("a coordinator that begins again keeps what some ranks may have gone with", "[ckptd]") {
    agreement::coordinator c(2, 2, 8);
    const agreement::ballot number{1, 8};
    const copy_key gone_with{round_one, 3}, newer{round_one, 5};
    c.set_storage({});
    auto one = holds(number, {{gone_with, 0}, {newer, 0}}),
         other = holds(number, {{gone_with, 1}, {newer, 1}});
    one.accepted = agreement::ballot{1, 2};
    one.key = gone_with;
    SECTION("all have accepted it") {
        other.accepted = one.accepted;
        other.key = gone_with;
        c.on(0, one);
        c.on(1, other);
        CHECK(c.chosen().key == gone_with);
    }
    SECTION("one has not: nobody has gone") {
        c.on(0, one);
        c.on(1, other);
        CHECK(c.chosen().key == newer);
    }
    SECTION("one does not know: only another round helps") {
        other.forgetful = true;
        c.on(0, one);
        c.on(1, other);
        CHECK(c.now() == agreement::coordinator::phase::stale);
    }
}

TEST_CASE("a writer of an older round is not heard", "[ckptd]") {
    agreement::agreement a;
    agreement::launch l;
    l.generation = round_one;
    l.self = 1;
    l.nodes = l.world = 2;
    l.slot_of_rank = {0, 1};
    a.open(l);
    CHECK(a.receive(0, {round_two, agreement::collect{{1, 1}}}).fenced);
    CHECK(a.generation() == round_two);
    const auto late = a.receive(0, {round_one, commit{{round_one, 4}, level::memory}});
    CHECK(late.send.empty());
    CHECK_FALSE(a.committed(level::memory));
}
