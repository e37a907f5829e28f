// SPDX-License-Identifier: BSD-3-Clause
//
// The rules of the agreement as they are carried to other daemons: here one of two, whose frames may be lost.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "ckptd/daemon/job_agreement.hpp"

namespace test_job_agreement {

using namespace banyan::ckpt;
namespace asio = boost::asio;
using banyan::task;

namespace {

constexpr std::uint64_t generation = make_generation(0, 1), life = 7;

// Slot 1 of two, with ranks 2 and 3. What it sends is kept; `answers` says whether it arrives. What is only
// told leaves either way.
struct bench {
    asio::io_context io;
    std::vector<agreement::message> sent;
    bool answers = true;
    int kept = 0, changed = 0, asked = 0, told = 0;  // the last two in frames
    std::shared_ptr<job_agreement> agreed;

    bench() {
        job_agreement::host h;
        h.spawn = [this](task<void> work) { asio::co_spawn(io, std::move(work), asio::detached); };
        h.send = [this](std::uint32_t, job_agreement::messages what) -> task<banyan::result<void>> {
            ++asked;
            if (!answers) co_return banyan::fail(banyan::errc::unavailable, "cut off");
            sent.insert(sent.end(), what.begin(), what.end());
            co_return banyan::result<void>{};
        };
        h.tell = [this](std::uint32_t, job_agreement::messages what) -> task<banyan::result<void>> {
            ++told;
            if (answers) sent.insert(sent.end(), what.begin(), what.end());
            co_return banyan::result<void>{};
        };
        h.gather = [](copy_key) -> task<void> { co_return; };
        h.keep = [this] { ++kept; };
        h.bring = [this](agreement::prepare p) { number = p.number; };
        h.begin = h.fenced = [] {};
        h.changed = [this] { ++changed; };
        h.free = [](agreement::shelf::id) {};
        agreed = std::make_shared<job_agreement>(std::move(h));
        agreement::launch l;
        l.generation = generation;
        l.self = 1;
        l.nodes = 2;
        l.world = 4;
        l.slot_of_rank = {0, 0, 1, 1};
        l.nonce = life;
        agreed->open(l);
    }
    std::optional<agreement::ballot> number;

    void run() {
        io.restart();
        io.run();
    }
    void hear(agreement::body what) {
        agreed->receive(0, {{generation, std::move(what)}});
        run();
    }
    void begin() {
        const agreement::ballot first{1, 5};
        hear(agreement::collect{first});
        hear(agreement::prepare{first, {}, life});
        REQUIRE(number == first);
        agreed->brought(first, {});
        hear(agreement::release{first, {}, {}});
        REQUIRE(agreed->rules().has_begun());
        sent.clear();
        asked = told = 0;
    }
    void save(agreement::shelf::id number_of_copy, std::uint32_t rank, std::uint64_t step) {
        agreed->add({number_of_copy, {{generation, step}, rank}, true, true, {}});
        agreed->safe(number_of_copy, agreement::level::replicated);
        run();
    }
    std::vector<std::uint32_t> voters() const {
        std::vector<std::uint32_t> out;
        for (const auto& m : sent)
            if (const auto* v = std::get_if<agreement::vote>(&m.what)) out.push_back(v->rank);
        return out;
    }
};

}  // namespace

TEST_CASE("votes that were lost are said again for every rank of the node", "[ckptd]") {
    bench b;
    b.begin();
    b.answers = false;
    b.save(1, 2, 1);
    b.save(2, 3, 1);
    b.answers = true;
    b.agreed->tick();
    b.run();
    CHECK(b.voters() == std::vector<std::uint32_t>{2, 3});
}

TEST_CASE("of a step's words nobody waits for an answer, and a tick asks whether the leader is there",
          "[ckptd]") {
    bench b;
    b.begin();
    b.save(1, 2, 1);
    b.save(2, 3, 1);
    CHECK(b.asked == 0);
    CHECK(b.told == 2);
    b.agreed->tick();
    b.run();
    CHECK(b.asked == 1);
    CHECK(b.told == 2);
    CHECK(b.agreed->leader() == 0);
    // Here the leader is gone without a word. What leaves says nothing of that.
    b.answers = false;
    b.save(3, 2, 2);
    CHECK(b.told == 3);
    CHECK(b.agreed->leader() == 0);
    b.agreed->tick();
    b.run();
    CHECK(b.asked == 2);
    CHECK(b.agreed->leader() == 1);
    b.sent.clear();
    b.answers = true;
    b.agreed->tick();
    b.run();
    CHECK(b.asked == 3);
    CHECK(b.agreed->leader() == 0);
}

TEST_CASE("what was told to a leader that is gone is said to the next one at once", "[ckptd]") {
    bench b;
    b.begin();
    b.answers = false;
    b.save(1, 2, 1);
    CHECK(b.agreed->rules().votes().open().empty());
    b.agreed->tick();
    b.run();
    REQUIRE(b.agreed->leader() == 1);  // this one
    CHECK(b.agreed->rules().votes().missing({generation, 1}) == std::vector<std::uint32_t>{0, 1, 3});
}

TEST_CASE("who was silent is asked, whatever is to be said", "[ckptd]") {
    bench b;
    b.begin();
    b.answers = false;
    b.save(1, 2, 1);
    b.agreed->tick();
    b.run();
    REQUIRE(b.agreed->leader() == 1);
    b.asked = b.told = 0;
    const agreement::vote::one what{{generation, 1}, agreement::level::memory};
    for (const std::uint32_t rank : {0u, 1u, 2u, 3u}) b.hear(agreement::vote{rank, {what}, 1, 2});
    CHECK(b.told == 0);  // of the commit
    CHECK(b.asked > 0);
    CHECK(b.agreed->leader() == 1);
}

TEST_CASE("what a tick decides is told, whatever else it says", "[ckptd]") {
    bench b;
    b.begin();
    b.answers = false;
    b.save(1, 2, 1);
    b.save(2, 2, 3);
    b.agreed->tick();
    b.run();
    REQUIRE(b.agreed->leader() == 1);  // and rank 2 has passed step 2 over, of which nobody has spoken yet
    const agreement::vote::one what{{generation, 2}, agreement::level::memory};
    b.hear(agreement::vote{0, {what}, 1, 3});
    REQUIRE(b.agreed->rules().votes().open().size() == 2);
    b.agreed->add({9, {what.key, 0}, false, true, {}});  // slot 0 is asked whether it still needs that
    b.answers = true;
    b.agreed->tick();
    b.run();
    int asked = 0, told = 0;
    for (const auto& m : b.sent) {
        asked += std::holds_alternative<agreement::still_needed>(m.what);
        told += std::holds_alternative<agreement::passed_over>(m.what);
    }
    CHECK(asked == 1);
    CHECK(told == 1);
}

TEST_CASE("a tick beside a frame that is under way has that one or the next answered", "[ckptd]") {
    bench b;
    b.begin();
    b.agreed->add({1, {{generation, 1}, 2}, true, true, {}});
    b.agreed->safe(1, agreement::level::replicated);
    b.agreed->tick();
    b.run();
    CHECK(b.asked == 1);
    CHECK(b.told == 0);
    CHECK(b.voters() == std::vector<std::uint32_t>{2});
}

TEST_CASE("what has changed is kept before anybody hears of it", "[ckptd]") {
    bench b;
    b.begin();
    const int before = b.kept;
    b.agreed->add({1, {{generation, 1}, 2}, true, true, {}});
    b.agreed->safe(1, agreement::level::replicated);
    CHECK(b.kept > before);
    CHECK(b.sent.empty());
    b.run();
    CHECK(b.voters() == std::vector<std::uint32_t>{2});
}

TEST_CASE("that a launch is over is kept before a later one has its answer", "[ckptd]") {
    bench b;
    b.begin();
    const int before = b.kept;
    b.agreed->end_launch(make_generation(1, 0));
    CHECK(b.kept == before + 1);
    b.save(1, 2, 1);
    CHECK(b.voters().empty());
}

TEST_CASE("of the votes that are counted here only the deciding one is kept and shown", "[ckptd]") {
    bench b;
    b.begin();
    const agreement::vote::one what{{generation, 1}, agreement::level::replicated};
    const int kept = b.kept, changed = b.changed;
    for (const std::uint32_t rank : {0u, 1u, 2u}) b.hear(agreement::vote{rank, {what}, 1, 2});
    CHECK(b.kept == kept);
    CHECK(b.changed == changed);
    b.hear(agreement::vote{3, {what}, 1, 2});
    CHECK(b.kept > kept);
    CHECK(b.changed > changed);
    CHECK(b.agreed->rules().committed(agreement::level::replicated) == what.key);
}

}  // namespace test_job_agreement
