// SPDX-License-Identifier: BSD-3-Clause
//
// What all ranks begin from, and who is asked before that is chosen.
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "agreement_parts.hpp"

namespace test_coordinator {

using namespace banyan::ckpt;
using namespace ckptd_test;
using agreement::level;
using agreement::shelf;

TEST_CASE("a rank begins with what another one of its kind has, when nobody has its own", "[ckptd]") {
    // Three ranks are left of four; with groups of one all of them have the same.
    agreement::coordinator c(3, 3, 7, 1);
    const agreement::ballot first{1, 7};
    const copy_key newest{round_one, 9};
    c.on(0, holds(first, {{newest, 0}}));
    c.on(1, holds(first, {{newest, 3}}));
    c.on(2, holds(first, {{newest, 2}}));
    c.set_storage({});
    REQUIRE(c.now() == agreement::coordinator::phase::preparing);
    CHECK(c.chosen().key == newest);
    CHECK(c.chosen().instead.size() == 1);
    const auto other = c.chosen().instead.at(1);
    CHECK(c.chosen().holders[1] == c.chosen().holders[other == 3 ? 1 : other]);
    CHECK(c.newest_if_whole() == newest);

    SECTION("where that is damaged another one is taken, and then an older step") {
        const auto on_all = [&](const agreement::ballot& number) {
            c.on(0, holds(number, {{newest, 0}}));
            c.on(1, holds(number, {{newest, 3}}));
            c.on(2, holds(number, {{newest, 2}}));
        };
        std::set<std::uint32_t> tried;
        for (std::uint64_t number = 1; c.now() == agreement::coordinator::phase::preparing; ++number) {
            REQUIRE(number < 5);
            tried.insert(c.chosen().instead.at(1));
            c.on(1, agreement::prepared{{number, 7}, {1}});
            on_all({number + 1, 7});
        }
        CHECK(tried.size() == 3);
        CHECK(c.now() == agreement::coordinator::phase::lost);
    }
}

TEST_CASE("a step is given up only where every shard that a rank could begin with was tried", "[ckptd]") {
    // Ranks 0, 2, 4 have the same, and so have 1, 3, 5; two of six are left.
    agreement::coordinator c(2, 2, 7, 2);
    const copy_key newest{round_one, 20}, older{round_one, 10};
    std::uint64_t number = 1;
    const auto all_say = [&](std::vector<agreement::held> one, std::vector<agreement::held> other = {}) {
        one.insert(one.end(), {{older, 0}, {older, 1}});
        c.on(0, holds({number, 7}, std::move(one)));
        c.on(1, holds({number, 7}, std::move(other)));
        REQUIRE(c.now() == agreement::coordinator::phase::preparing);
    };
    const auto rank_one_fails = [&] { c.on(1, agreement::prepared{{number++, 7}, {1}}); };
    const auto begins_with = [&](std::uint32_t other) {
        CHECK(c.chosen().key == newest);
        CHECK(c.chosen().instead == std::map<std::uint32_t, std::uint32_t>{{1, other}});
    };
    SECTION("another one at the same node") {
        c.set_storage({});
        all_say({{newest, 0}, {newest, 3}, {newest, 5}});
        begins_with(3);
        rank_one_fails();
        all_say({{newest, 0}, {newest, 5}});
        begins_with(5);
        CHECK(c.chosen().holders[1] == std::vector<std::uint32_t>{0});
        rank_one_fails();
        all_say({{newest, 0}, {newest, 5}});
        CHECK(c.chosen().key == older);
    }
    SECTION("another one, where who is said to have its own does not give it") {
        c.set_outside({.said = {{{"n7", "10.0.0.7"}, holds({}, {{newest, 1}})}}});
        c.set_storage({});
        all_say({{newest, 0}, {newest, 3}});
        CHECK(c.chosen().instead.empty());
        rank_one_fails();
        all_say({{newest, 0}, {newest, 3}});
        begins_with(3);
        CHECK(c.chosen().holders[1] == std::vector<std::uint32_t>{0});
        rank_one_fails();
        all_say({{newest, 0}, {newest, 3}});
        CHECK(c.chosen().key == older);
    }
    SECTION("but no other one where its daemon has its own and refuses that: it would take it again") {
        c.set_storage({});
        all_say({{newest, 0}, {newest, 3}}, {{newest, 1}});
        rank_one_fails();
        all_say({{newest, 0}, {newest, 3}}, {{newest, 1}});
        CHECK(c.chosen().key == older);
    }
    SECTION("nor storage alone, which was tried with the last one") {
        c.set_storage({newest});
        all_say({{newest, 0}, {newest, 3}});
        begins_with(3);
        rank_one_fails();
        all_say({{newest, 0}});
        CHECK(c.chosen().key == older);
    }
}

TEST_CASE("of another kind nobody stands in, nor without groups", "[ckptd]") {
    const bool groups = GENERATE(true, false);
    agreement::coordinator c(2, 4, 7, groups ? 2 : 0);
    const agreement::ballot first{1, 7};
    const copy_key newest{round_one, 9}, older{round_one, 8};
    // Of `newest` the odd ranks' shards are gone, of `older` nothing is.
    c.on(0, holds(first, {{newest, 0}, {older, 0}, {older, 1}}));
    c.on(1, holds(first, {{newest, 2}, {older, 2}, {older, 3}, {newest, 6}}));
    c.set_storage({});
    CHECK(c.chosen().key == older);
    CHECK(c.chosen().instead.empty());
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

TEST_CASE("what nodes outside of the assignment hold is chosen, and is all that is new", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const agreement::ballot first{1, 7};
    const copy_key newer{round_one, 9}, older{round_one, 8};
    c.on(0, holds(first, {{newer, 0}, {older, 0}}));
    c.on(1, holds(first, {{older, 1}}));
    CHECK_FALSE(c.newest_if_whole());
    c.set_outside({.said = {{{"n7", "10.0.0.7"}, holds({}, {{newer, 1}})}}});
    c.set_storage({});
    REQUIRE(c.now() == agreement::coordinator::phase::preparing);
    CHECK(c.chosen().key == newer);
    CHECK(c.chosen().holders == std::vector<std::vector<std::uint32_t>>{{0}, {2}});
    CHECK(c.chosen().outside == std::vector<agreement::node_address>{{"n7", "10.0.0.7"}});
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
        c.set_outside({.said = {{{}, outside}}});
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

TEST_CASE("what became replicated behind the others' backs does not count", "[ckptd]") {
    // The second node was silent when a launch began from `base` without it, and went on with the one before.
    agreement::coordinator c(2, 2, 7);
    const copy_key newest{round_two, 5}, base{round_one, 7}, theirs{round_one, 8};
    auto one = holds({1, 7}, {{newest, 0}, {newest, 1}, {base, 0}, {base, 1}}), other = holds({1, 7}, {});
    one.begun = {round_two, base};
    one.replicated = base;
    other.begun = {round_one, std::nullopt};
    other.replicated = theirs;
    const auto released_with = [&] {
        c.on(0, one);
        c.on(1, other);
        c.set_storage({});
        c.on(0, agreement::prepared{{1, 7}, {}});
        c.on(1, agreement::prepared{{1, 7}, {}});
        return std::get<agreement::release>(c.due().at(0).what).replicated;
    };
    SECTION("else the first node would free what is replicated there") { CHECK(released_with() == base); }
    SECTION("but where all of it is still there") {
        other.copies = {{theirs, 0}, {theirs, 1}};
        CHECK(released_with() == theirs);
    }
    SECTION("nor what a node outside says that has taken part in the later launch") {
        one.begun = {};
        auto outside = holds({}, {{base, 0}});
        outside.begun = {round_two, base};
        c.set_outside({.said = {{{"n7", ""}, outside}}});
        CHECK(released_with() == base);
    }
}

TEST_CASE("what counts as replicated is judged in every attempt, by all that was ever said", "[ckptd]") {
    // The first node is asked in an attempt after which it has lost all.
    agreement::coordinator c(2, 2, 7);
    const copy_key base{round_one, 8}, theirs{round_one, 10}, newest{round_two, 12};
    auto one = holds({1, 7}, {}), other = holds({1, 7}, {});
    const auto released_with = [&] {
        c.on(0, one);
        c.on(1, other);
        REQUIRE(c.chosen().key == newest);
        auto forgotten = holds({1, 7}, {});
        forgotten.life = 2;
        forgotten.forgetful = true;
        c.on(0, forgotten);
        REQUIRE(c.now() == agreement::coordinator::phase::collecting);
        forgotten.number = other.number = {2, 7};
        c.on(0, forgotten);
        c.on(1, other);
        REQUIRE(c.chosen().key == newest);
        c.on(0, agreement::prepared{{2, 7}, {}});
        c.on(1, agreement::prepared{{2, 7}, {}});
        return std::get<agreement::release>(c.due().at(0).what).replicated;
    };
    SECTION("what was whole then is not now") {
        // It was silent when the launch began from `base`, and has made its own step replicated.
        one.copies = {{theirs, 0}, {theirs, 1}};
        one.begun = {round_one, std::nullopt};
        one.replicated = theirs;
        other.copies = {{newest, 0}, {newest, 1}, {base, 0}, {base, 1}};
        other.begun = {round_two, base};
        other.replicated = base;
        c.set_storage({});
        CHECK(released_with() == base);
    }
    SECTION("what was overtaken then still is") {
        one.begun = {round_two, base};
        one.replicated = base;
        other.begun = {round_one, std::nullopt};
        other.replicated = theirs;
        c.set_storage({newest});
        CHECK(released_with() == base);
    }
}

TEST_CASE("who is told what is replicated forgets what does not count", "[ckptd]") {
    shelf copies;
    const copy_key base{round_one, 7}, theirs{round_one, 8};
    copies.note_release(std::nullopt, std::nullopt, round_one);
    copies.add(own(1, base));
    copies.note_commit(theirs, level::replicated);
    copies.note_release(copy_key{round_two, 5}, base, round_two + 1);
    CHECK(copies.newest(level::replicated) == base);
    CHECK(copies.sweep().empty());
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
    const agreement::word_outside outside{.said = {{{"n7", ""}, holds({}, {{newest, 1}})}}};

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

TEST_CASE("a silent node is awaited where somebody knows that a step is not whole without it", "[ckptd]") {
    agreement::coordinator c(2, 2, 7);
    const copy_key newest{round_one, 37}, older{round_one, 30};
    auto one = holds({1, 7}, {{newest, 0}}), other = holds({1, 7}, {});
    const auto hear = [&](agreement::word_outside word, std::vector<copy_key> stored) {
        c.on(0, one);
        c.on(1, other);
        c.set_outside(std::move(word));
        c.set_storage(std::move(stored));
    };
    const agreement::word_outside silent{.said = {}, .some_are_silent = true};
    SECTION("though storage has an older one, or nobody has any") {
        const std::vector<copy_key> stored = GENERATE_COPY(std::vector<copy_key>{}, std::vector{older});
        other.replicated = newest;
        hear(silent, stored);
        CHECK(c.now() == agreement::coordinator::phase::collecting);
        CHECK(c.awaited() == newest);
        CHECK_FALSE(c.knows_storage());
        SECTION("until it has answered") {
            c.set_outside({.said = {{{"n7", ""}, holds({}, {{newest, 1}})}}});
            c.set_storage(stored);
            REQUIRE(c.now() == agreement::coordinator::phase::preparing);
            CHECK(c.chosen().key == newest);
            CHECK_FALSE(c.awaited());
        }
        SECTION("or has it no more") {
            c.set_outside({});
            c.set_storage(stored);
            REQUIRE(c.now() == agreement::coordinator::phase::preparing);
            CHECK(c.chosen().key == (stored.empty() ? std::nullopt : std::optional(older)));
        }
    }
    SECTION("where a node outside knows it") {
        auto outside = holds({}, {{newest, 1}});
        one.copies.clear();
        outside.replicated = newest;
        hear({.said = {{{"n7", ""}, outside}}, .some_are_silent = true}, {older});
        CHECK(c.awaited() == newest);
    }
    SECTION("where the shard that a member had turns out to be damaged") {
        other.replicated = newest;
        other.copies = {{newest, 1}};
        hear(silent, {older});
        REQUIRE(c.chosen().key == newest);
        c.on(1, agreement::prepared{{1, 7}, {1}});
        one.number = other.number = {2, 7};
        other.copies.clear();
        c.on(0, one);
        c.on(1, other);
        CHECK(c.awaited() == newest);
        CHECK_FALSE(c.knows_storage());
    }
    SECTION("not where it is whole without it") {
        other.replicated = newest;
        other.copies = {{newest, 1}};
        hear(silent, {});
        CHECK(c.chosen().key == newest);
    }
    SECTION("nor where nobody knows that it was replicated: a step that was on its way") {
        hear(silent, {older});
        CHECK(c.chosen().key == older);
    }
    SECTION("nor where something newer is whole, or a later launch has begun from something older") {
        other.replicated = newest;
        if (GENERATE(true, false)) {
            one.begun = {round_two, older};
            hear(silent, {older});
            CHECK(c.chosen().key == older);
        } else {
            hear(silent, {{round_two, 1}});
            CHECK(c.chosen().key == copy_key{round_two, 1});
        }
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
    const agreement::word_outside outside{.said = {{{"n7", ""}, holds({}, {{newer, 0}, {newer, 1}})}}};
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

TEST_CASE("what a late message says of other nodes changes nothing", "[ckptd]") {
    const copy_key newest{round_one, 9};
    SECTION("a member names former nodes in an answer to another attempt") {
        agreement::coordinator c(2, 2, 7);
        auto late = holds({1, 6}, {}), now = holds({1, 7}, {});
        late.former = {{"n8", ""}};
        now.former = {{"n9", ""}};
        c.on(1, late);
        CHECK(c.former().empty());
        c.on(1, now);
        CHECK(c.former() == now.former);
    }
    SECTION("the coordinator names the holders of an attempt that is over") {
        const shelf nothing;
        agreement::member m(7);
        const agreement::ballot first{1, 5}, second{2, 5};
        const auto asks = [&](const agreement::ballot& number, const char* holder) {
            m.on(agreement::collect{number}, nothing);
            return agreement::prepare{number, {newest, false, {{}, {2}}, {{holder, ""}}}, 7};
        };
        const auto late = asks(first, "n8"), now = asks(second, "n9");
        CHECK(m.on(now, nothing).bring->what.outside == now.what.outside);
        CHECK_FALSE(m.on(late, nothing).bring);
    }
}

}  // namespace test_coordinator
