// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes hold up a job that is to start again, and what becomes of that.
#include <catch2/catch.hpp>

#include "fault/controller/node_incidents.hpp"
#include "fault/policy/rule.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fake_cluster.hpp"

namespace test_holders {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using std::chrono::milliseconds;

namespace {

using clock_type = holder_search::clock;

constexpr holder_search::limits within{milliseconds(45'000), milliseconds(5'000)};
const clock_type::time_point start{std::chrono::hours(1)};

clock_type::time_point at(int ms) { return start + milliseconds(ms); }

job_status job_of(std::vector<std::string> nodes, job_phase phase = job_phase::running) {
    job_status out;
    out.id = 5;
    out.phase = phase;
    out.batch_host = nodes.empty() ? "" : nodes.front();
    out.nodes = std::move(nodes);
    return out;
}

/// By a job that is in the queue.
holders held(std::vector<std::string> where) {
    return {.where = std::move(where),
            .why_not = "It is in the queue already, where Slurm would lose its GRES with a node"};
}

job_status ending(std::vector<std::string> nodes) { return job_of(std::move(nodes), job_phase::completing); }

/// Incidents in memory, and what was to be acted on.
class book {
  public:
    asio::io_context io;
    records known{io, std::chrono::seconds(30), std::make_shared<metrics>()};
    std::vector<std::uint64_t> acted;
    node_incidents of_nodes{known,
                            {.boot_of = [](const std::string& node) { return "boot of " + node; },
                             .hear = [this](std::uint64_t number, change) { acted.push_back(number); }}};

    book() {
        std::filesystem::create_directories(dir_);
        limiter limits{policy_limits{}};
        REQUIRE(known.open((dir_ / "history.db").string(), limits));
        incident lost;
        lost.object.node = "n09";
        known.incidents().open(std::move(lost), 1);
    }
    ~book() {
        known.finish();
        std::filesystem::remove_all(dir_);
    }
    const incident& at(std::uint64_t number) { return *known.incidents().find(number); }

  private:
    std::filesystem::path dir_ = banyan::testing::scratch_path("holders");
};

}  // namespace

TEST_CASE("what more than half of the nodes that were asked share is not mended by taking nodes out",
          "[fault]") {
    struct row {
        std::size_t asked, holders;
        bool taken_out;
    };
    for (const auto& [asked, count, taken_out] : {row{4, 1, true},
                                                  {4, 2, true},
                                                  {4, 3, false},
                                                  {4, 4, false},
                                                  {3, 1, true},
                                                  {3, 2, false},
                                                  {1, 1, false},
                                                  {2, 1, true},
                                                  {2, 2, false},
                                                  {4096, 2048, true},
                                                  {4096, 2049, false}}) {
        CAPTURE(asked, count);
        CHECK(too_many(count, asked) != taken_out);
    }
    CHECK_FALSE(too_many(0, 0));
}

TEST_CASE("nobody holds up a job that runs, waits or has ended everywhere", "[fault]") {
    holder_search search(job_of({"n1", "n2", "n3", "n4"}), start, within);
    for (const int ms : {0, 50'000, 100'000}) {
        CHECK_FALSE(search.look(job_of({"n1", "n2", "n3", "n4"}), at(ms)));
        CHECK_FALSE(search.look(job_of({}, job_phase::pending), at(ms)));
        CHECK_FALSE(search.look(ending({}), at(ms)));
    }
    auto other = ending({"n2"});
    other.id = 6;
    CHECK_FALSE(search.look(other, at(110'000)));
    CHECK_FALSE(search.look(other, at(120'000)));
}

TEST_CASE("nodes that end one after the other hold up nothing; those that stay are told once", "[fault]") {
    holder_search search(job_of({"n1", "n2", "n3", "n4"}), start, within);
    CHECK_FALSE(search.look(ending({"n2", "n3", "n4"}), at(50'000)));
    CHECK_FALSE(search.look(ending({"n4", "n3"}), at(54'000)));
    CHECK_FALSE(search.look(ending({"n3", "n4"}), at(58'900)));
    CHECK(search.look(ending({"n3", "n4"}), at(59'000)) == held({"n3", "n4"}));
    CHECK_FALSE(search.look(ending({"n3", "n4"}), at(70'000)));
    CHECK_FALSE(search.look(ending({"n4"}), at(71'000)));
    CHECK(search.look(ending({"n4"}), at(76'000)) == held({"n4"}));
    // It ran again, and ends again.
    CHECK_FALSE(search.look(job_of({"n1"}), at(80'000)));
    CHECK_FALSE(search.look(ending({"n1"}), at(81'000)));
    CHECK_FALSE(search.look(ending({"n1"}), at(90'000)));
    CHECK(search.look(ending({"n1"}), at(126'000)) == held({"n1"}));
}

TEST_CASE("each node that holds up a job becomes an incident, once", "[fault]") {
    book b;
    const auto job = job_of({"n1", "n2", "n3", "n4"});
    b.of_nodes.held_up(1, job, {{"n2", "n3"}, true, "processes are left on n[2-3]", {}, 5});
    CHECK(b.acted == std::vector<std::uint64_t>{2, 3});
    REQUIRE(b.at(1).find_action("holders", "5"));
    CHECK(b.at(1).find_action("holders", "5")->result ==
          "waits for n[2-3], which have not ended its last run (processes are left on n[2-3])");
    const auto& made = b.at(3);
    CHECK(made.reason == "node-stuck");
    CHECK(kind_of(made) == line_kind::stuck);
    CHECK(made.object.text() == "n3");
    CHECK(made.cause == "n3 has not ended the last run of job 5");
    CHECK(made.boot_id == "boot of n3");
    CHECK(made.jobs == std::vector<std::uint64_t>{5});
    CHECK(made.line_ms == made.incident_ms);
    REQUIRE(made.evidence.size() == 1);
    CHECK(made.evidence[0].text ==
          "2 of the 5 nodes asked have not ended the last run of job 5 (processes are left on n[2-3]), all "
          "others asked have; the job is recovered from incident f00001");
    // Again, while nothing is done with n3: it is a fresh fact, of another job perhaps.
    auto other = job;
    other.id = 6;
    b.of_nodes.held_up(1, other, {{"n3"}, true});
    CHECK(b.acted == std::vector<std::uint64_t>{2, 3, 3});
    CHECK(b.at(3).jobs == std::vector<std::uint64_t>{6});
    CHECK(b.at(3).evidence.size() == 2);
    // It was out, came back, and does it again.
    b.known.incidents().find(3)->node_out_ms = 1;
    b.of_nodes.held_up(1, job, {{"n3"}, true});
    CHECK(b.acted == std::vector<std::uint64_t>{2, 3, 3, 4});
    CHECK(b.at(3).closed_ms != 0);
}

TEST_CASE("what many nodes share takes none out, and is said", "[fault]") {
    book b;
    b.of_nodes.held_up(1, job_of({"n1", "n2", "n3", "n4"}),
                       judge_last_run({3, {"n2", "n3", "n4"}, {}, {}, {}}));
    CHECK(b.acted.empty());
    CHECK(b.known.incidents().all().size() == 1);
    REQUIRE(b.at(1).find_action("holders", "5"));
    CHECK(
        b.at(1)
            .find_action("holders", "5")
            ->result.starts_with(
                "n[2-4], 3 of the 3 nodes asked, have not ended its last run (processes are left on n[2-4]), "
                "and it waits for that. What so many share"));
}

TEST_CASE("what is known of the last run decides, and a doubt takes none out", "[fault]") {
    const auto holds = judge_last_run({4, {"n3"}, {}, {}, {}});
    CHECK(holds == holders{{"n3"}, true, "processes are left on n3", {}, 4});
    const auto silent = judge_last_run({4, {"n3"}, {"n2"}, {}, {}});
    CHECK(silent ==
          holders{{"n2", "n3"}, true, "processes are left on n3, slurmd does not answer on n2", {}, 4});
    const auto doubt = judge_last_run({4, {"n3"}, {}, {"n2"}, "no way there"});
    CHECK_FALSE(doubt.taken_out);
    CHECK(doubt.why_not ==
          "1 of the 4 nodes could not be looked at (no way there), and none is taken out on a doubt");
    CHECK_FALSE(judge_last_run({2, {"n2", "n3"}, {}, {}, {}}).taken_out);
    CHECK(judge_last_run({4, {}, {}, {}, {}}) == holders{{}, false, {}, {}, 4});
}

TEST_CASE("only steps that had the lost node are of the run before, and only nodes of the job are asked",
          "[fault]") {
    fake_state slurm;
    fake_cluster cluster(slurm);
    const auto job = job_of({"n1", "n3", "n4"});
    slurm.jobs[5] = job;
    slurm.needed[5] = std::optional<std::uint32_t>(3);
    slurm.holding = {"n1", "n3", "n4", "n7"};
    SECTION("a step without it is of a later run") {
        slurm.steps[5] = {{2, {"n1", "n3", "n4"}}};
        CHECK((*look_at_last_run(cluster, job, "n2"))->asked == 0);
    }
    SECTION("one that is smaller than the job needs is a helper's") {
        slurm.steps[5] = {{1, {"n1", "n2"}}};
        CHECK((*look_at_last_run(cluster, job, "n2"))->asked == 0);
    }
    SECTION("n7 left the job earlier") {
        slurm.steps[5] = {{1, {"n1", "n2", "n3", "n7"}}};
        const auto seen = *look_at_last_run(cluster, job, "n2");
        REQUIRE(seen);
        CHECK(seen->asked == 2);
        CHECK(seen->holding == std::vector<std::string>{"n1", "n3"});
    }
    SECTION("the job was requeued while the nodes were asked") {
        slurm.steps[5] = {{1, {"n1", "n2", "n3"}}};
        slurm.when_asked = [&] { slurm.jobs[5].restarts = 1; };
        CHECK_FALSE(*look_at_last_run(cluster, job, "n2"));
    }
    SECTION("how many it needs is not told") {
        slurm.unanswered = 1;
        CHECK_FALSE(look_at_last_run(cluster, job, "n2"));
    }
    SECTION("a node could not be asked") {
        slurm.steps[5] = {{1, {"n1", "n2", "n3", "n4"}}};
        slurm.holding = {"n1"};
        slurm.silent = {"n3"};
        slurm.unreachable = {"n4"};
        const auto seen = *look_at_last_run(cluster, job, "n2");
        REQUIRE(seen);
        CHECK(seen->holding == std::vector<std::string>{"n1"});
        CHECK(seen->silent == std::vector<std::string>{"n3"});
        CHECK(seen->unknown == std::vector<std::string>{"n4"});
        CHECK(seen->why == "n4 could not be looked at");
    }
}

}  // namespace test_holders
