// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes hold up a job that is to start again, and what becomes of that.
#include <catch2/catch.hpp>
#include <unistd.h>

#include "fault/controller/node_incidents.hpp"
#include "fault/policy/rule.hpp"

using namespace banyan;
using namespace banyan::fault;
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

job_status ending(std::vector<std::string> nodes) { return job_of(std::move(nodes), job_phase::completing); }

/// Incidents in memory, and what was to be acted on.
class book {
  public:
    asio::io_context io;
    records known{io, std::chrono::seconds(30), std::make_shared<metrics>()};
    std::vector<std::uint64_t> acted;
    node_incidents of_nodes{known,
                            {.boot_of = [](const std::string& node) { return "boot of " + node; },
                             .act = [this](std::uint64_t number) { acted.push_back(number); }}};

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
    std::filesystem::path dir_ =
        std::filesystem::temp_directory_path() / ("banyan-holders-" + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("what more than half of a job's nodes share is not mended by taking nodes out", "[fault]") {
    struct row {
        std::size_t nodes, holders;
        bool taken_out;
    };
    for (const auto& [nodes, count, taken_out] : {row{4, 1, true},
                                                  {4, 2, true},
                                                  {4, 3, false},
                                                  {4, 4, false},
                                                  {1, 1, true},
                                                  {2, 1, true},
                                                  {2, 2, false},
                                                  {3, 2, false},
                                                  {4096, 2048, true},
                                                  {4096, 2049, false}}) {
        CAPTURE(nodes, count);
        CHECK(too_many(count, nodes) != taken_out);
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
    CHECK(search.look(ending({"n3", "n4"}), at(59'000)) == holders{{"n3", "n4"}, false});
    CHECK_FALSE(search.look(ending({"n3", "n4"}), at(70'000)));
    CHECK_FALSE(search.look(ending({"n4"}), at(71'000)));
    CHECK(search.look(ending({"n4"}), at(76'000)) == holders{{"n4"}, false});
    // It ran again, and ends again.
    CHECK_FALSE(search.look(job_of({"n1"}), at(80'000)));
    CHECK_FALSE(search.look(ending({"n1"}), at(81'000)));
    CHECK_FALSE(search.look(ending({"n1"}), at(90'000)));
    CHECK(search.look(ending({"n1"}), at(126'000)) == holders{{"n1"}, false});
}

TEST_CASE("each node that holds up a job becomes an incident, once", "[fault]") {
    book b;
    const auto job = job_of({"n1", "n2", "n3", "n4"});
    b.of_nodes.held_up(1, job, {{"n2", "n3"}, true});
    CHECK(b.acted == std::vector<std::uint64_t>{2, 3});
    REQUIRE(b.at(1).find_action("holders", "5"));
    CHECK(b.at(1).find_action("holders", "5")->result ==
          "waits for n[2-3], which have not ended its last run");
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
          "2 of the 4 nodes of job 5 have not ended its last run (n[2-3]), all others have; the job is "
          "recovered from incident f00001");
    // Again, while what is to be done with n3 waits.
    b.of_nodes.held_up(1, job, {{"n3"}, true});
    CHECK(b.acted.size() == 2);
    CHECK(b.at(3).evidence.size() == 2);
    // It was out, came back, and does it again.
    b.known.incidents().find(3)->node_out_ms = 1;
    b.of_nodes.held_up(1, job, {{"n3"}, true});
    CHECK(b.acted == std::vector<std::uint64_t>{2, 3, 4});
    CHECK(b.at(3).closed_ms != 0);
}

TEST_CASE("what many nodes share takes none out, and is said", "[fault]") {
    book b;
    b.of_nodes.held_up(1, job_of({"n1", "n2", "n3", "n4"}), {{"n2", "n3", "n4"}, false});
    CHECK(b.acted.empty());
    CHECK(b.known.incidents().all().size() == 1);
    REQUIRE(b.at(1).find_action("holders", "5"));
    CHECK(b.at(1)
              .find_action("holders", "5")
              ->result.starts_with(
                  "n[2-4], 3 of its 4 nodes, have not ended its last run, and it waits for that."));
}
