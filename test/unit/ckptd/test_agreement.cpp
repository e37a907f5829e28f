// SPDX-License-Identifier: BSD-3-Clause
//
// Votes, commits, what may go, and who takes part.
#include <set>

#include <catch2/catch.hpp>

#include "agreement_parts.hpp"

namespace test_agreement {

using namespace banyan::ckpt;
using namespace ckptd_test;
using agreement::commit;
using agreement::level;
using agreement::shelf;

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

TEST_CASE("a round begins from what came to storage in the rounds before it", "[ckptd]") {
    agreement::launch alone;
    alone.generation = round_one;
    alone.nodes = alone.world = 1;
    alone.slot_of_rank = {0};
    alone.nonce = 7;
    agreement::agreement a;
    const auto carry_out = [&](agreement::effects e) {
        for (std::size_t i = 0; i < e.send.size(); ++i) {
            auto next = a.receive(0, e.send[i].second);
            if (next.bring) next = a.brought(next.bring->number, {});
            e.send.insert(e.send.end(), next.send.begin(), next.send.end());
        }
    };
    carry_out(a.open(alone));
    carry_out(a.storage_holds({}));
    REQUIRE(a.has_begun());
    const copy_key stored{round_one, 100};
    a.add(own(1, stored));
    carry_out(a.safe(1, level::memory));
    a.stored(stored);
    SECTION("where the memory is gone") {
        a.lose(1);
        carry_out(a.begin_again());
        CHECK(a.begun_from() == stored);
    }
    SECTION("where there is something newer in memory") {
        const copy_key newer{round_one, 120};
        a.add(own(2, newer));
        carry_out(a.safe(2, level::memory));
        carry_out(a.begin_again());
        CHECK(a.begun_from() == newer);
    }
    SECTION("the newest of many") {
        for (std::uint64_t step = 101; step <= 200; ++step) a.stored({round_one, step});
        a.lose(1);
        carry_out(a.begin_again());
        CHECK(a.begun_from() == copy_key{round_one, 200});
    }
    SECTION("of those that are still there") {
        a.stored({round_one, 110}, 2);
        a.stored({round_one, 120}, 2);
        a.lose(1);
        auto out = a.begin_again();
        const auto* first = a.coordinating();
        REQUIRE(first);
        carry_out(std::move(out));
        CHECK(a.begun_from() == copy_key{round_one, 120});
    }
    CHECK(a.generation() == round_two);
}

namespace {

/// Two slots with a rank each, of which this is the first; what is said to it is answered at once.
struct two_slots {
    agreement::agreement a;
    std::uint64_t generation = round_one;
    agreement::ballot number;

    explicit two_slots(std::uint64_t of = round_one) : generation(of) {
        agreement::launch l;
        l.generation = of;
        l.nodes = l.world = 2;
        l.slot_of_rank = {0, 1};
        l.nonce = 7;
        number = std::get<agreement::collect>(a.open(l).send.at(0).second.what).number;
    }
    agreement::effects hear(std::uint32_t from, agreement::body what) {
        return a.receive(from, {generation, std::move(what)});
    }
    /// All begin with what is chosen.
    void go() {
        hear(0, holds(number, {}));
        hear(1, holds(number, {}));
        REQUIRE(a.coordinating()->now() == agreement::coordinator::phase::preparing);
        hear(0, agreement::collect{number});
        hear(0, agreement::prepare{number, a.coordinating()->chosen(), 7});
        a.brought(number, {});
        hear(0, agreement::prepared{number, {}});
        for (const auto& [to, m] : hear(1, agreement::prepared{number, {}}).send)
            if (to == 0) a.receive(0, m);
        REQUIRE(a.has_begun());
    }
    void commit_step(std::uint64_t step, level safety = level::replicated) {
        hear(1, commit{{generation, step}, safety});
    }
};

}  // namespace

TEST_CASE("a beginning from nothing beside a node that was silent leaves it what it holds", "[ckptd]") {
    const bool all = GENERATE(true, false);
    CAPTURE(all);
    two_slots t;
    t.a.storage_holds({}, agreement::word_outside{.said = {}, .some_are_silent = !all});
    t.go();
    CHECK(t.a.needs_no_former() == all);
    // Nor does a round that begins anew find anything out.
    ++t.generation;
    t.a.receive(1, {t.generation, agreement::outbid{}});
    CHECK_FALSE(t.a.needs_no_former());
    for (const auto& [to, m] : t.a.tick().send)
        if (const auto* c = std::get_if<agreement::collect>(&m.what)) t.number = c->number;
    t.go();
    CHECK(t.a.needs_no_former() == all);
    t.commit_step(1, level::memory);
    CHECK(t.a.needs_no_former() == all);
    t.commit_step(2);
    CHECK(t.a.needs_no_former());
}

TEST_CASE("between a renewal and its launch nobody forgets the nodes of earlier launches", "[ckptd]") {
    two_slots t;
    t.a.storage_holds({});
    t.go();
    for (std::uint64_t step = 1; step <= 4; ++step) t.commit_step(step);
    REQUIRE(t.a.has_gone_on_alone());
    SECTION("what the launch before still completes says nothing of the next") {
        t.a.earlier().renew();
        t.a.earlier().add({"n3", ""});
        CHECK_FALSE(t.hear(1, commit{{round_one, 5}, level::replicated}).forgot);
        CHECK(t.a.earlier().nodes().size() == 1);
        // It begins, and they are named to its coordinator until it has gone on alone itself.
        t.a.open({.generation = round_one << 1, .self = 1, .nodes = 2, .world = 2, .slot_of_rank = {0, 1}});
        const auto said = t.a.receive(0, {round_one << 1, agreement::collect{{1, 9}}}).send;
        REQUIRE(said.size() == 1);
        CHECK(std::get<agreement::inventory>(said[0].second.what).former.size() == 1);
    }
    SECTION("in the launch that runs they are") {
        t.a.earlier().add({"n3", ""});
        CHECK(t.hear(1, commit{{round_one, 5}, level::replicated}).forgot);
        CHECK(t.a.earlier().nodes().empty());
        CHECK_FALSE(t.hear(1, commit{{round_one, 6}, level::replicated}).forgot);
    }
}

TEST_CASE("what is saved in a launch that is over is told to nobody", "[ckptd]") {
    two_slots t;
    t.a.storage_holds({});
    t.go();
    auto c = own(1, {round_one, 1});
    c.checked = false;
    t.a.add(c);
    t.a.checked(1);
    CHECK(t.a.copies().checked().size() == 1);
    CHECK(t.a.end_launch(round_one << 1));
    c.number = 2;
    c.what.key.step = 2;
    t.a.add(c);
    t.a.checked(2);
    CHECK(t.a.copies().checked().size() == 1);
}

TEST_CASE("nodes that were not asked are none that have answered", "[ckptd]") {
    two_slots t;
    t.a.storage_holds({}, std::nullopt);
    t.go();
    CHECK_FALSE(t.a.needs_no_former());
}

TEST_CASE("who heard steps that were on their way when its launch ended forgets no former nodes", "[ckptd]") {
    two_slots t;
    t.a.storage_holds({});
    t.go();
    for (std::uint64_t step = 1; step <= 3; ++step) {
        t.commit_step(step);
        t.commit_step(step);  // said twice
        t.commit_step(step + 1, level::memory);
        CHECK(t.a.stands_alone());
        CHECK_FALSE(t.a.has_gone_on_alone());
    }
    t.commit_step(4);
    CHECK(t.a.has_gone_on_alone());
}

namespace {

/// What the only slot says to itself; what it is to bring is there.
void carry_out(agreement::agreement& a, const agreement::effects& e) {
    for (const auto& [to, m] : e.send) carry_out(a, a.receive(to, m));
    if (e.bring) carry_out(a, a.brought(e.bring->number, {}));
}

/// Of two groups of one rank each, which have taken a step, the first goes on alone.
agreement::agreement one_of_two(std::uint64_t generation, level safety) {
    two_slots t;
    t.a.storage_holds({});
    t.go();
    t.a.add(own(1, {round_one, 1}));
    t.commit_step(1, safety);
    t.a.follow(1);
    agreement::launch alone;
    alone.generation = generation;
    alone.nodes = alone.world = alone.group = 1;
    alone.slot_of_rank = {0};
    alone.nonce = 7;
    carry_out(t.a, t.a.open(alone));
    carry_out(t.a, t.a.storage_holds({}));
    REQUIRE(t.a.has_begun());
    REQUIRE(t.a.begun_from() == copy_key{round_one, 1});
    return t.a;
}

}  // namespace

TEST_CASE("on the one node that is left nothing overtakes what was replicated on more", "[ckptd]") {
    const auto safety = GENERATE(level::memory, level::replicated);
    const std::uint64_t generation = 2u << round_bits;
    auto a = one_of_two(generation, safety);
    for (std::uint64_t step = 2; step < 7; ++step)
        a.receive(0, {generation, commit{{generation, step}, level::memory}});
    // The other node's second copies are all there is when this one dies.
    CHECK(a.stands_alone() == (safety == level::memory));
    CHECK(a.needs_no_former() == (safety == level::memory));
    CHECK(a.has_gone_on_alone() == (safety == level::memory));
}

TEST_CASE("nobody votes to a slot that only a larger launch had", "[ckptd]") {
    const std::uint64_t generation = 2u << round_bits;
    auto a = one_of_two(generation, level::replicated);
    a.add(own(2, {generation, 2}));
    const auto said = a.safe(2, level::memory).send;
    REQUIRE(said.size() == 1);
    CHECK(said[0].first == 0);
}

TEST_CASE("the word of a launch that is over makes nobody let go of what a later one rests on", "[ckptd]") {
    const std::uint64_t launch = 1u << round_bits;
    two_slots t(2 * launch);
    CHECK_FALSE(t.a.may_be_left_by(launch));
    CHECK_FALSE(t.a.may_be_left_by(2 * launch + 1));
    CHECK(t.a.may_be_left_by(3 * launch));
    CHECK(t.a.end_launch(4 * launch + 1));
    CHECK_FALSE(t.a.end_launch(4 * launch + 1));
    CHECK_FALSE(t.a.end_launch(4 * launch));
    CHECK_FALSE(t.a.may_be_left_by(3 * launch + 1));
    CHECK(t.a.may_be_left_by(4 * launch));
    CHECK(t.a.end_launch(5 * launch));  // news, for who is started again
    CHECK_FALSE(t.a.may_be_left_by(4 * launch + 1));
}

TEST_CASE("a decision is told to all once, then to whoever asks again", "[ckptd]") {
    agreement::vote_counter v(2);
    const copy_key key{round_one, 1}, other{round_one, 2};
    const auto vote = [&](std::uint32_t rank, std::vector<agreement::vote::one> kept) {
        return v.count(round_one, {}, {rank, std::move(kept), 1, 3});
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
    // Who has heard of the one is told of the other alone.
    const auto heard = vote(0, {{key, level::memory, true}, {other, level::memory}});
    REQUIRE(heard.known.size() == 1);
    CHECK(std::holds_alternative<agreement::passed_over>(heard.known[0]));
}

TEST_CASE("what a rank has not settled yet is passed over by nobody, whatever the step", "[ckptd]") {
    const std::uint64_t step = GENERATE(0u, 1u, 7u);
    CAPTURE(step);
    two_slots t;
    t.a.storage_holds({});
    t.go();
    t.hear(1, agreement::vote{1, {{{round_one, step}, level::replicated}}, step, step + 1});
    t.a.add(own(1, {round_one, step}));
    for (const auto& [to, m] : t.a.tick().send) {  // the copy is still on its way to the buddy
        if (const auto* v = std::get_if<agreement::vote>(&m.what)) CHECK(v->end == step);
        if (to == 0) t.a.receive(0, m);
    }
    CHECK(t.a.votes().open() == std::vector{copy_key{round_one, step}});
    for (const auto& [to, m] : t.a.safe(1, level::replicated).send)
        if (to == 0) t.a.receive(0, m);
    CHECK(t.a.committed(level::replicated) == copy_key{round_one, step});
}

TEST_CASE("a vote says of which commit there is nothing more to tell", "[ckptd]") {
    two_slots t;
    t.a.storage_holds({});
    t.go();
    std::vector<bool> heard;
    const auto save = [&](std::uint64_t step) {
        t.a.add(own(step, {round_one, step}));
        t.a.safe(step, level::replicated);
        heard.clear();
        for (const auto& [to, m] : t.a.tick().send)
            if (const auto* v = std::get_if<agreement::vote>(&m.what))
                for (const auto& one : v->kept) heard.push_back(one.heard);
    };
    save(1);
    CHECK(heard == std::vector{false});
    t.commit_step(1, level::memory);  // it may be more
    save(2);
    CHECK(heard == std::vector{false, false});
    t.commit_step(2);
    save(3);
    CHECK(heard == std::vector{true, false});
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

TEST_CASE("a copy of a rank that the launch has not is asked of nobody", "[ckptd]") {
    agreement::agreement a;
    agreement::launch l;
    l.generation = round_one;
    l.self = 1;
    l.nodes = 2;
    l.world = 2;
    l.slot_of_rank = {0, 1};
    l.nonce = 5;
    (void)a.open(l);
    for (const std::uint32_t rank : {0u, 2u, 1000u}) {
        auto c = own(rank + 1, {round_one, 3});
        c.own = false;
        c.what.rank = rank;
        a.add(c);
    }
    std::size_t asked = 0;
    for (const auto& [to, m] : a.tick().send)
        if (const auto* about = std::get_if<agreement::still_needed>(&m.what)) {
            ++asked;
            CHECK(about->what.rank == 0);
        }
    CHECK(asked == 1);
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

}  // namespace test_agreement
