// SPDX-License-Identifier: BSD-3-Clause
//
// A sweep that a rule asks for: the agent's process, what the controller makes of its answer, and the rules.
#include <fstream>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <sys/stat.h>

#include "fault/agent/node_sweep.hpp"
#include "fault/policy/review.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/controller_bench.hpp"

namespace test_node_sweep {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

constexpr const char* unfit_json =
    R"({"verdict":"unfit","checks":[{"check":"clock","verdict":"fit","what":["good"]},)"
    R"({"check":"gpus","verdict":"unfit","what":["GPU 3 is lost","2 missing"]},)"
    R"({"check":"disks","verdict":"unfit","what":["full\u001b[2J"]}]})";

class sweeping {
  public:
    banyan::testing::held_run time{1ms};  // a real process's answers are on their way
    std::filesystem::path dir = banyan::testing::scratch_path("sweeping");
    asio::io_context io;
    config settings = load_config({}, "n03").value();

    sweeping() {
        std::filesystem::create_directories(dir);
        settings.sweep_program = (dir / "sweep").string();
        settings.sweep_timeout = 60s;
    }
    ~sweeping() { std::filesystem::remove_all(dir); }
    void program(const std::string& does) {
        std::ofstream(dir / "sweep.new") << "#!/bin/sh\necho \"$@\" >>" << (dir / "runs").string() << "\n"
                                         << does << "\n";
        ::chmod((dir / "sweep.new").c_str(), 0700);
        std::filesystem::rename(dir / "sweep.new", dir / "sweep");
    }
    void hangs(const std::string& does) {
        settings.sweep_timeout = 1s;
        program(does);
    }
    std::vector<std::string> runs() const {
        std::vector<std::string> out;
        std::ifstream file(dir / "runs");
        for (std::string line; std::getline(file, line);) out.push_back(line);
        return out;
    }
    std::vector<sweep_answer> ask(node_sweep& of, std::size_t times = 1) {
        std::vector<sweep_answer> out;
        const auto one = [&]() -> task<void> { out.push_back(co_await of.ask()); };
        for (std::size_t n = 0; n < times; ++n) asio::co_spawn(io, one(), asio::detached);
        REQUIRE(time.until(io, [&] { return out.size() == times; }));
        return out;
    }
};

policy rules_of(const std::string& text) {
    auto read = parse_policy("site.toml", text);
    INFO((read.problems.empty() ? "" : read.problems.front().what));
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

constexpr const char* sweep_rules =
    "[[rule]]\nname = \"unfit\"\nswept = \"unfit\"\naction = \"drain\"\n"
    "[[rule]]\nname = \"look\"\nxid = 79\naction = \"sweep\"\n";

}  // namespace

TEST_CASE("what banyan-sweep says is unfit, fit, or not known", "[fault]") {
    const auto unfit = read_sweep(unfit_json, 1);
    CHECK(unfit.verdict == "unfit");
    CHECK(unfit.text == "gpus: GPU 3 is lost, 2 missing; disks: full\\x1b[2J");
    // One that ends with another code than it says is not believed.
    CHECK(read_sweep(unfit_json, 0).verdict == "unknown");
    CHECK(read_sweep(unfit_json, 4).verdict == "unknown");
    const auto fit =
        read_sweep(R"({"verdict":"fit","checks":[{"check":"clock","verdict":"fit","what":["good"]},)"
                   R"({"check":"memory","verdict":"skipped","what":["a job has the node"]}]})",
                   0);
    CHECK(fit.verdict == "fit");
    CHECK(fit.text == "clock: good; not looked at: memory: a job has the node");
    const auto nothing = read_sweep(
        R"({"verdict":"fit","checks":[{"check":"memory","verdict":"skipped","what":["a job has the node"]}]})",
        0);
    CHECK(nothing.verdict == "unknown");
    CHECK(nothing.text == "nothing was looked at: memory: a job has the node");
    const auto blind = read_sweep(
        R"({"verdict":"unknown","checks":[{"check":"gpus","verdict":"unknown","what":["no library"]}]})", 3);
    CHECK(blind.verdict == "unknown");
    CHECK(blind.text == "gpus: no library");
    CHECK(read_sweep("", 2).verdict == "unknown");
    CHECK(read_sweep("[]", 0).verdict == "unknown");
    CHECK(read_sweep("{}", 0).verdict == "unknown");
}

TEST_CASE("a node is swept once, however many ask", "[fault]") {
    sweeping s;
    s.program("sleep 0.2; echo '" + std::string(unfit_json) + "'; exit 1");
    node_sweep of(s.io, s.settings);
    for (const auto& answer : s.ask(of, 3)) CHECK(answer.verdict == "unfit");
    (void)s.ask(of);
    REQUIRE(s.runs().size() == 1);
    CHECK(s.runs()[0] == "--json --node n03 --time-limit 60");
    s.settings.sweep_again = 0s;
    (void)s.ask(of);
    CHECK(s.runs().size() == 2);
}

TEST_CASE("an agent in a sandbox has systemd sweep outside of it", "[fault]") {
    sweeping s;
    s.program("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
    s.settings.sandboxed = true;
    s.settings.unit_program = s.settings.sweep_program;
    s.settings.sweep_program = (s.dir / "inside").string();
    std::ofstream(s.settings.sweep_program) << "#!/bin/sh\necho '" << unfit_json << "'; exit 1\n";
    ::chmod(s.settings.sweep_program.c_str(), 0700);
    node_sweep of(s.io, s.settings);
    CHECK(s.ask(of)[0].verdict == "unfit");
    REQUIRE(s.runs().size() == 1);
    const auto words = s.runs()[0];
    CHECK(words.starts_with("--quiet --wait --pipe --collect --description="));
    CHECK(words.find(" --unit=banyan-sweep-asked --property=KillMode=process --property=TimeoutStopSec=1 ") !=
          std::string::npos);
    CHECK(words.find(" --property=RuntimeMaxSec=63 ") != std::string::npos);
    CHECK(words.ends_with(" -- " + s.settings.sweep_program + " --json --node n03 --time-limit 60"));
    SECTION("which may not be able to") {
        s.program("echo 'Failed to connect to bus' >&2; exit 1");
        s.settings.sweep_again = 0s;
        const auto answer = s.ask(of)[0];
        CHECK(answer.verdict == "unknown");
        CHECK(answer.text.starts_with(s.settings.unit_program + " ended with code 1"));
    }
}

TEST_CASE("a node that was fit is not known to be so later", "[fault]") {
    sweeping s;
    s.program(R"(echo '{"verdict":"fit","checks":[{"check":"clock","verdict":"fit","what":["good"]}]}')");
    node_sweep of(s.io, s.settings);
    CHECK(s.ask(of)[0].verdict == "fit");
    const auto later = s.ask(of)[0];
    CHECK(later.verdict == "unknown");
    CHECK(later.text.starts_with("it was fit "));
    CHECK(s.runs().size() == 1);
}

TEST_CASE("what a sweep found is short enough for the controller", "[fault]") {
    std::string bells;
    for (int n = 0; n < 500; ++n) bells += "\\u0007";
    const auto found = read_sweep(
        R"({"verdict":"unfit","checks":[{"check":"gpus","verdict":"unfit","what":[")" + bells + R"("]}]})",
        1);
    CHECK(found.verdict == "unfit");
    CHECK(found.text.size() <= 420);
}

TEST_CASE("a sweep that tells nothing leaves the node unknown", "[fault]") {
    sweeping s;
    node_sweep of(s.io, s.settings);
    SECTION("it is not there") { s.settings.sweep_program = (s.dir / "none").string(); }
    SECTION("it crashes") { s.program("kill -SEGV $$"); }
    SECTION("it fails") { s.program("exit 2"); }
    SECTION("it hangs") { s.hangs("exec sleep 600"); }
    SECTION("it hangs and has closed its output") { s.hangs("exec >&- ; exec sleep 600"); }
    CHECK(s.ask(of)[0].verdict == "unknown");
}

TEST_CASE("a node whose agent is away is not known to be fit, and stays", "[fault]") {
    controller_bench b;
    b.rules = rules_of(sweep_rules);
    auto got = b.live({b.xid79()});
    REQUIRE(got.size() == 1);
    CHECK(got[0].swept == "unknown");
    CHECK(results_of(got[0], "sweep") == "whether the node is fit is not known: its agent is not connected");
    CHECK(got[0].evidence.back().text.starts_with("banyan-sweep: whether the node is fit is not known"));
    CHECK(b.slurm.calls.empty());
    // Once for an incident.
    got = b.live({b.xid79(2)});
    CHECK(std::ranges::count(got[0].actions, std::string("sweep"), &action_record::what) == 1);
}

TEST_CASE("a sweep waits for nobody's job, and for the limits", "[fault]") {
    controller_bench b;
    b.rules = rules_of(sweep_rules);
    std::string why;
    SECTION("jobs have the node") {
        b.job(7, {"n03"}, with_spare);
        why = "left alone: jobs have the node, and the rule has no busy = true";
    }
    SECTION("which the rule does not mind") {
        b.rules = rules_of("[[rule]]\nname = \"look\"\nxid = 79\naction = \"sweep\"\nbusy = true\n");
        b.job(7, {"n03"}, with_spare);
        why = "whether the node is fit is not known: its agent is not connected";
    }
    SECTION("dry run") {
        b.settings.dry_run = true;
        why = "dry run: its agent would be asked for a sweep";
    }
    SECTION("the limit of an hour") {
        b.settings.drains_per_hour = 0;
        why =
            "held back: for 0 incidents jobs were interrupted or nodes swept within the hour, which is the "
            "limit";
    }
    const auto got = b.live({b.xid79()}, incident_state::held);
    CHECK(results_of(got.at(0), "sweep") == why);
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("an approved sweep is no approval of what follows from it", "[fault]") {
    controller_bench b;
    b.rules = rules_of("[[rule]]\nname = \"gone\"\nswept = \"unknown\"\naction = \"drain\"\n" +
                       std::string(sweep_rules));
    b.settings.drains_per_hour = 0;
    (void)b.live({b.xid79()}, incident_state::held);
    b.wait_for_it = false;
    const auto answer = b.ruled(ruling::approve);
    REQUIRE(answer);
    CHECK(*answer == "the agent of n03 is asked for a sweep now: banyan-fault explain f00001");
    const auto got = b.live({}, incident_state::held);
    CHECK(got.at(0).swept == "unknown");
    CHECK(got[0].rule == "gone");
    CHECK(b.slurm.calls.empty());
    CHECK(results_of(got[0], "node_drain").starts_with("held back: 0 nodes were taken out"));
}

TEST_CASE("what a sweep found decides by a rule", "[fault]") {
    const auto rules = rules_of(sweep_rules);
    incident i;
    i.object.kind = object_kind::gpu;
    i.object.node = "n03";
    i.xid = 79;
    CHECK(rules.decide(i).step == step_kind::sweep);
    for (const auto* is : {"fit", "unknown"}) {
        i.swept = is;
        CHECK(rules.decide(i).step == step_kind::sweep);
    }
    i.swept = "unfit";
    CHECK(rules.decide(i).step == step_kind::drain);
    CHECK(rules.decide(i).rule == "unfit");
}

TEST_CASE("rules about sweeps are checked", "[fault]") {
    const auto problem = [](const std::string& text) {
        const auto read = parse_policy("site.toml", text);
        return read.problems.empty() ? "" : read.problems.front().what;
    };
    CHECK(problem("[[rule]]\nname = \"a\"\nswept = \"ill\"\naction = \"drain\"\n").find("swept = \"ill\"") !=
          std::string::npos);
    CHECK(problem("[[rule]]\nname = \"a\"\nbusy = true\naction = \"drain\"\n").find("busy = true") !=
          std::string::npos);
    CHECK(problem("[[rule]]\nname = \"a\"\nbusy = 1\naction = \"sweep\"\n").find("busy = 1") !=
          std::string::npos);
    const auto warned = [](const std::string& text) {
        std::string out;
        for (const auto& w : review(rules_of(text)).warnings) out += w.what + "\n";
        return out;
    };
    CHECK(warned(sweep_rules).find("no rule asks for a sweep") == std::string::npos);
    CHECK(warned("[[rule]]\nname = \"unfit\"\nswept = \"unfit\"\naction = \"drain\"\n")
              .find("rule \"unfit\": no rule asks for a sweep") != std::string::npos);
}

}  // namespace test_node_sweep
