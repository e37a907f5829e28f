// SPDX-License-Identifier: BSD-3-Clause
//
// The controller's judgement and order of actions, on a fake cluster: what is done, what is left alone, and
// that nothing is done twice, also across a restart.
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <unistd.h>

#include "fault/controller/controller.hpp"
#include "test/unit/fault/fake_cluster.hpp"
#include "test/unit/fault/lines.hpp"

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

class bench {
  public:
    std::filesystem::path dir =
        std::filesystem::temp_directory_path() / ("banyan-controller-" + std::to_string(::getpid()));
    fake_state slurm;
    config settings = load_config({}, "n00").value();

    bench() {
        std::filesystem::create_directories(dir);
        settings.bind = "127.0.0.1";
        settings.port = 0;
        settings.history = (dir / "history.db").string();
        settings.dry_run = false;
        for (const char* name : {"n01", "n02", "n03", "n04"}) slurm.nodes[name] = {name, false, false, ""};
    }
    ~bench() { std::filesystem::remove_all(dir); }

    void job(std::uint32_t id, std::vector<std::string> nodes, result<std::optional<std::uint32_t>> needed) {
        job_status j;
        j.id = id;
        j.phase = job_phase::running;
        j.nodes = std::move(nodes);
        j.may_requeue = true;
        slurm.jobs[id] = j;
        slurm.needed[id] = std::move(needed);
    }
    /// One life of a controller: starts, takes the events, ends when the incidents are done.
    std::vector<incident> live(std::vector<event> events) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, std::make_shared<metrics>(), std::make_unique<fake_cluster>(slurm));
        const auto started = c.start();
        INFO((started ? "" : started.error().text()));
        REQUIRE(started);
        if (!events.empty()) asio::co_spawn(io, c.take_events("n03", std::move(events)), asio::detached);
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        const auto busy = [&] {
            return c.incidents().all().empty() || std::ranges::any_of(c.incidents().all(), [](const auto& p) {
                       return p.second.state != incident_state::done;
                   });
        };
        do io.run_for(std::chrono::milliseconds(50));
        while (busy() && std::chrono::steady_clock::now() < until);
        CHECK_FALSE(busy());
        io.run_for(std::chrono::milliseconds(50));
        pool.join();
        c.finish();
        std::vector<incident> out;
        for (const auto& [number, i] : c.incidents().all()) out.push_back(i);
        return out;
    }
    event xid79(std::uint64_t position = 1) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), wall_ms(), position);
    }
};

constexpr std::uint32_t with_spare = 3, without = 4;  // nodes that the job needs, of its four

}  // namespace

TEST_CASE("79 takes the node out once and leaves a job with spares to banyan-run", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    const auto e = b.xid79();
    auto got = b.live({e, e});
    REQUIRE(got.size() == 1);
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    CHECK(b.slurm.nodes["n03"].reason == "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00001]");
    CHECK(got[0].jobs == std::vector<std::uint64_t>{7});
    CHECK(got[0].sealed_ms != 0);
    CHECK(got[0].node_out_ms >= got[0].sealed_ms);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.find("3 nodes left, 3 needed") != std::string::npos);
    // The agent sends it again to the next controller: nothing happens.
    got = b.live({e});
    CHECK(got.size() == 1);
    CHECK(b.slurm.calls.size() == 1);
}

TEST_CASE("too few nodes left: requeued, and started now", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
    REQUIRE(got.size() == 1);
    CHECK(got[0].find_action("start_now", "7"));
}

TEST_CASE("how many nodes a job needs is asked until slurmctld tells", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    b.slurm.unanswered = 2;
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
}

TEST_CASE("a job whose plan cannot be believed is left alone, which is said", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, fail(errc::denied, "job 7 has two plans"));
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result == "job 7 has two plans: left alone");
}

TEST_CASE("a job without a plan that has lost a node goes on", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, std::nullopt);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.starts_with("goes on: 3 nodes left; "));
}

TEST_CASE("dry run, foreign reasons and application errors change nothing", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    SECTION("dry run") {
        b.settings.dry_run = true;
        const auto got = b.live({b.xid79()});
        REQUIRE(got.size() == 1);
        CHECK(got[0].find_action("node_down", "n03")->result.starts_with("dry run: would set n03 DOWN"));
        CHECK(got[0].advice.find("taken out now") == std::string::npos);
        CHECK(got[0].advice.find("scontrol update NodeName=n03 State=DOWN") != std::string::npos);
    }
    SECTION("an administrator drained it") {
        b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
        const auto got = b.live({b.xid79()});
        CHECK(got[0].find_action("node_down", "n03")->result ==
              "left alone: the node has the reason \"fan test\"");
        CHECK(b.slurm.nodes["n03"].reason == "fan test");
    }
    SECTION("application") {
        const auto got = b.live({event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), wall_ms(), 5)});
        CHECK(got[0].actions.empty());
    }
    SECTION("an old line") {
        auto e = b.xid79();
        e.line_ms -= 3'600'000;
        const auto got = b.live({e});
        CHECK(got[0].find_action("node_down", "n03")->result.starts_with("held back: the line is"));
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a reset class fault drains and lets the job end", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    (void)b.live({event_of(gpu_line(3, "119, Timeout"), wall_ms(), 5)});
    CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
}
