// SPDX-License-Identifier: BSD-3-Clause
//
// Lines become incidents: one fault, one incident, one culprit.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/controller/agent_clock.hpp"
#include "fault/incident/engine.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_engine {

using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a storm of 300 lines on eight GPUs is one incident with the first one as culprit", "[fault]") {
    engine e;
    std::int64_t t = 1'000'000;
    std::uint64_t lines = 0;
    const auto feed = [&](int gpu, const std::string& rest, std::int64_t at) {
        (void)e.absorb(event_of(gpu_line(gpu, rest), at, lines), at);
        ++lines;
    };
    feed(5, "149, NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x1 0x2)", t);
    for (int gpu = 1; gpu <= 8; ++gpu)
        feed(gpu, "145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x1 0x2)", t + 1);
    for (int n = 0; n < 64; ++n)
        feed(5, "45, pid=1, name=p, channel 0x00000008 caused by previous Xid 149", t + 283);
    for (int gpu = 1; gpu <= 8; ++gpu)
        for (int n = 0; n < 32; ++n) feed(gpu, "45, pid=1, name=p, Ch 00000008", t + 300);
    feed(5, "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", t + 404);
    REQUIRE(e.all().size() == 1);
    const auto& i = e.all().begin()->second;
    CHECK(lines > 300);
    CHECK(i.lines == lines);
    CHECK(i.evidence.size() == incident::max_evidence);
    CHECK(i.evidence.front().text.find("): 149, ") != std::string::npos);
    CHECK(i.evidence.back().text.find("): 154, ") != std::string::npos);
    CHECK(i.object.kind == object_kind::gpu);
    CHECK(i.object.gpu == 5);
    CHECK(i.cause.starts_with("Xid 149 GPU 5"));
    CHECK(i.cause.ends_with("the driver asks for a node reboot"));
    CHECK(i.reason == "gpu-reboot");
    CHECK(i.severity == severity::fatal);
    CHECK(i.verdict == 2u);
}

TEST_CASE("79 names the GPU and is fatal at once", "[fault]") {
    engine e;
    const auto out =
        e.absorb(event_of(gpu_line(3, "79, pid=1, name=p, GPU has fallen off the bus.")), 1'000'005);
    CHECK(out.created);
    CHECK(out.escalated);
    const auto& i = *e.find(out.number);
    CHECK(i.cause == "Xid 79 GPU 3 fell off the bus");
    CHECK(i.reason == "gpu-xid-79");
    CHECK(i.line_ms == 1'000'000);
    CHECK(i.incident_ms == 1'000'005);
    // The same event without a number joins it.
    const auto again =
        e.absorb(event_of("NVRM: GPU 0000:03:00.0: GPU has fallen off the bus.", 1'000'100), 1'000'100);
    CHECK(again.number == out.number);
    CHECK_FALSE(again.escalated);
}

TEST_CASE("an application error before the real fault is not the culprit", "[fault]") {
    engine e;
    (void)e.absorb(event_of(gpu_line(1, "13, pid=1, name=p, Graphics Exception")), 1'000'000);
    const auto out = e.absorb(event_of(gpu_line(2, "79, GPU has fallen off the bus."), 1'002'000), 1'002'000);
    CHECK(e.all().size() == 1);
    CHECK(out.escalated);
    CHECK(e.find(out.number)->object.gpu == 2);
    CHECK(e.find(out.number)->line_ms == 1'002'000);
}

TEST_CASE("time, boot and node part incidents", "[fault]") {
    engine e(30'000);
    const auto one = e.absorb(event_of(gpu_line(1, "31, pid=1, name=p, MMU Fault"), 1'000'000), 0);
    const auto late = e.absorb(event_of(gpu_line(1, "31, pid=1, name=p, MMU Fault"), 1'031'000), 0);
    CHECK(one.number != late.number);
    auto other_boot = event_of(gpu_line(1, "31, x"), 1'031'000);
    other_boot.boot_id = "next";
    CHECK(e.absorb(other_boot, 0).created);
    CHECK(e.absorb(event_of(gpu_line(1, "31, x"), 1'031'000, 0, "n04"), 0).created);
}

TEST_CASE("the driver's later words about a card that is out open nothing", "[fault]") {
    engine e;
    const auto out = e.absorb(event_of(gpu_line(3, "79, x"), 1'000'000), 1'000'000);
    e.find(out.number)->node_out_ms = 1'000'500;
    CHECK(e.absorb(event_of(gpu_line(3, "79, x"), 9'000'000), 9'000'000).number == out.number);
    e.find(out.number)->closed_ms = 9'500'000;  // the node came back: now it is a new fault
    CHECK(e.absorb(event_of(gpu_line(3, "79, x"), 9'600'000), 9'600'000).created);
}

TEST_CASE("a line from before somebody closed the incident is its evidence, and opens nothing", "[fault]") {
    engine e;
    const auto at = [](std::int64_t written_ms, std::int64_t skew_ms, const std::string& line) {
        auto out = event_of(line, written_ms + skew_ms);
        out.written_ms = written_ms;
        return out;
    };
    const std::int64_t skew = GENERATE(0, -50'000, 50'000);
    const auto line = gpu_line(3, "95, pid=1, name=p, Uncontained ECC error");
    const auto first = e.absorb(at(1'000'000, skew, line), 1'000'000);
    auto& i = *e.find(first.number);
    i.node_out_ms = 1'000'500;
    i.closed_ms = 1'006'000;
    i.closed_by = "uid 7";
    SECTION("told late") {
        const auto late = e.absorb(at(1'005'999, skew, line), 1'010'000);
        CHECK(late.number == first.number);
        CHECK(late.past);
        CHECK_FALSE(late.created);
        CHECK_FALSE(late.escalated);
        CHECK(i.lines == 2);
        CHECK(i.closed_ms == 1'006'000);
        CHECK(e.absorb(at(1'050'000, skew, line), 1'050'000).created);
    }
    SECTION("what is written from then on is a new fault, a moment later too") {
        CHECK(e.absorb(at(1'006'000, skew, line), 1'006'001).created);
    }
    SECTION("a line whose time is not known is new") {
        CHECK(e.absorb(event_of(line, 1'005'000), 1'010'000).created);
    }
    SECTION("nobody has seen to a heavier fault, or to another boot's") {
        CHECK(e.absorb(at(1'005'000, skew, gpu_line(3, "79, x")), 1'010'000).created);
        auto other = at(1'005'000, skew, line);
        other.boot_id = "next";
        CHECK(e.absorb(other, 1'010'000).created);
    }
    SECTION("an incident that ended by itself is nobody's word about a GPU") {
        i.reason = silent_reason;
        CHECK(e.absorb(at(1'005'000, skew, line), 1'010'000).created);
    }
}

TEST_CASE("what an agent's clock shows is told by when it sends", "[fault]") {
    agent_clock clock;
    CHECK_FALSE(clock.ours(1'000));
    clock.heard(1'000, 61'030);  // a minute behind, and 30 ms on the way
    CHECK(clock.ours(500) == 60'530);
    clock.heard(2'000, 70'000);  // this one waited long
    CHECK(clock.ours(500) == 60'530);
    for (int n = 0; n < 8; ++n) clock.heard(70'000 + n, 70'005 + n);  // it was set
    CHECK(clock.ours(500) == 505);
    clock.heard(10'000, 80'010);  // and set back
    CHECK(clock.ours(10'000) == 80'010);
}

TEST_CASE("a fault that is told again hours later is the same one, with a count", "[fault]") {
    engine e(30'000);
    const auto line = gpu_line(1, "74, pid=1, name=p, NVLink: fatal error detected on link 14(0x0)");
    const auto first = e.absorb(event_of(line, 1'000'000), 0);
    for (std::int64_t hour = 1; hour <= 5; ++hour)
        CHECK(e.absorb(event_of(line, 1'000'000 + hour * 3'600'000), 0).number == first.number);
    CHECK(e.all().size() == 1);
    CHECK(e.find(first.number)->seen.size() == 6);
    // Another GPU's is another fault, and so is what comes when a person has seen to the first.
    CHECK(e.absorb(event_of(gpu_line(2, "74, x"), 90'000'000), 0).created);
    e.find(first.number)->closed_ms = 91'000'000;
    CHECK(e.absorb(event_of(line, 92'000'000), 0).created);
}

TEST_CASE("an application's error accuses the job of its process", "[fault]") {
    engine e(30'000);
    const auto of_job = [&](std::uint32_t job, std::int64_t at) {
        auto one = event_of(gpu_line(1, "31, pid=77, name=p, MMU Fault"), at);
        one.job = job;
        return e.absorb(one, at).number;
    };
    const auto first = of_job(7, 1'000'000);
    CHECK(e.find(first)->accused == 7);
    CHECK(e.find(first)->jobs == std::vector<std::uint64_t>{7});
    CHECK(e.find(first)->cause.ends_with(", job 7"));
    CHECK(of_job(7, 1'010'000) == first);
    CHECK(of_job(7, 9'000'000) == first);  // the same job again is no other fault
    const auto other = of_job(8, 9'001'000);
    CHECK(other != first);  // at the same time, of another job
    CHECK(e.find(other)->jobs == std::vector<std::uint64_t>{8});
    CHECK(of_job(7, 9'002'000) == first);
    const auto back = incident_from(to_json(*e.find(other)));
    REQUIRE(back);
    CHECK(back->accused == 8);
    // What breaks the GPU is nobody's application.
    const auto lost = e.absorb(event_of(gpu_line(1, "79, off the bus"), 9'003'000), 0).number;
    CHECK(e.find(lost)->accused == 0);
}

TEST_CASE("94 and 95 after 48 and a lone 45 are consequences", "[fault]") {
    engine e;
    (void)e.absorb(event_of(gpu_line(1, "48, pid=1, name=p, DBE"), 1'000'000), 0);
    const auto out = e.absorb(event_of(gpu_line(1, "95, Uncontained: x"), 1'000'001), 0);
    CHECK_FALSE(out.created);
    CHECK(e.find(out.number)->cause.starts_with("Xid 48"));
    engine lone;
    const auto alone = lone.absorb(event_of(gpu_line(1, "45, pid=1, name=p, Ch 1")), 0);
    CHECK(alone.created);
    CHECK_FALSE(alone.escalated);
    CHECK(lone.find(alone.number)->severity == severity::notice);
}

TEST_CASE("two GPUs of a node that need a reset are two incidents", "[fault]") {
    engine e;
    const auto first = e.absorb(event_of(gpu_line(5, "95, Uncontained: x"), 1'000'000), 0);
    const auto second = e.absorb(event_of(gpu_line(6, "119, Timeout after 6s"), 1'000'050), 0);
    CHECK(second.created);
    CHECK(second.escalated);
    CHECK(e.find(second.number)->object.gpu == 6);
    // Each gets its own words from then on, in whatever order they come.
    CHECK(e.absorb(event_of(gpu_line(5, "95, Uncontained: x"), 1'000'100), 0).number == first.number);
    CHECK(e.absorb(event_of(gpu_line(6, "119, Timeout after 6s"), 1'000'200), 0).number == second.number);
    CHECK(e.find(first.number)->codes == std::map<std::uint32_t, std::uint64_t>{{95, 2}});
    CHECK(e.absorb(event_of(gpu_line(7, "79, off the bus"), 1'000'300), 0).created);
    // What an incident of one GPU that takes the machine down has not said.
    CHECK_FALSE(e.absorb(event_of(gpu_line(2, "119, Timeout after 6s"), 1'000'400), 0).created);
}

TEST_CASE("three SXid lines are one incident", "[fault]") {
    engine e;
    const std::string head = "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, ";
    for (const char* rest :
         {"Fatal, Link 32 egress error", "Severity 1 Engine instance 60", "Data {0x00000004}"})
        (void)e.absorb(event_of(head + rest), 1'000'000);
    REQUIRE(e.all().size() == 1);
    CHECK(e.all().begin()->second.object.kind == object_kind::sw);
    CHECK(e.all().begin()->second.cause == "SXid 12028 NVSwitch 0000:86:00 link 32");
}

TEST_CASE("an incident survives being written and read", "[fault]") {
    engine e;
    const auto out =
        e.absorb(event_of(gpu_line(3, "154, recovery action changed from 0x0 (N) to 0x1 (R)")), 1'000'005);
    auto& i = *e.find(out.number);
    i.jobs = {7, 8};
    i.actions.push_back({"node_drain", "n03", 5, "done"});
    i.object.ends = {{"leaf", "MF0;leaf", 3, 0xfc6a1c0300000080}};
    i.node_out_ms = 77;
    const auto back = incident_from(to_json(i));
    REQUIRE(back);
    CHECK(to_json(*back) == to_json(i));
    CHECK_FALSE(incident_from(nlohmann::json::parse("[]")));
    CHECK_FALSE(incident_from(nlohmann::json::parse(R"({"object":{},"severity":"purple"})")));
}

TEST_CASE("an event survives the wire, a wrong one is refused", "[fault]") {
    const auto e =
        event_of(gpu_line(3, "154, recovery action changed from 0x0 (N) to 0x1 (R)"), 1'000'005, 42);
    const auto back = event_from(nlohmann::json::parse(to_json(e).dump()));
    REQUIRE(back);
    CHECK(back->key() == e.key());
    CHECK(back->fault.recovery == 1u);
    CHECK(back->gpu == 3);
    auto bad = to_json(e);
    bad["kind"] = 9;
    CHECK_FALSE(event_from(bad));
    bad = to_json(e);
    bad["node"] = std::string(5000, 'n');
    CHECK_FALSE(event_from(bad));
    CHECK_FALSE(event_from(nlohmann::json("text")));
}

}  // namespace test_engine
