// SPDX-License-Identifier: BSD-3-Clause
//
// What looks at the GPUs by NVIDIA's library tell, and how that joins with the kernel's lines.
#include <cstdlib>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/catalog/symptom.hpp"
#include "fault/incident/engine.hpp"
#include "fault/sources/gpu_facts.hpp"
#include "test/built.hpp"

namespace test_gpu_facts {

using namespace banyan;
using namespace banyan::fault;
using hardware::gpu_answers;
using hardware::gpu_health;

namespace {

gpu_health well(int n) {
    gpu_health out;
    out.bus_id = "00000000:0" + std::to_string(n) + ":00.0";
    out.links = {true, true};
    return out;
}
gpu_health lost(const std::string& bus_id = "number 1") {
    gpu_health out;
    out.bus_id = bus_id;
    out.lost = true;
    return out;
}
gpu_answers two() { return {well(1), well(2)}; }

/// Facts that have seen two GPUs that are well.
struct seen_well : gpu_facts {
    seen_well() { REQUIRE(after_look(two()).faults.empty()); }
    /// Faults of so many equal looks.
    std::vector<kernel_fault> looks(int count, const gpu_answers& show) {
        std::vector<kernel_fault> out;
        for (; count > 0; --count)
            for (auto& f : after_look(show).faults) out.push_back(std::move(f));
        return out;
    }
};

event event_of(const kernel_fault& fault, std::uint64_t position) {
    event e;
    e.node = "n03";
    e.boot_id = "b";
    e.stream = "s";
    e.position = position;
    e.line_ms = 1'000'000 + static_cast<std::int64_t>(position) * 5'000;
    e.fault = fault;
    return e;
}

std::uint32_t code(catalog::symptom s) { return static_cast<std::uint32_t>(s); }

}  // namespace

TEST_CASE("a GPU that is lost is one that fell off the bus", "[fault]") {
    for (const auto& shown : {gpu_answers{well(1), lost()}, gpu_answers{well(1), lost("00000000:02:00.0")}}) {
        seen_well facts;
        auto first = facts.after_look(shown);
        CHECK(first.faults.empty());  // once may be a reset that somebody does
        CHECK(first.again_soon);
        const auto found = facts.looks(3, shown);
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == fault_kind::bus_loss);
        CHECK(found[0].code == 79);
        CHECK(found[0].bdf == "0000:02:00");
        // The kernel's own line, before or after, is the same incident.
        kernel_parser kernel;
        const auto line = kernel.line(
            "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
        engine e;
        const auto number = e.absorb(event_of(*line.fault, 1), 1).number;
        CHECK(e.absorb(event_of(found[0], 2), 1).number == number);
        CHECK(e.find(number)->reason == "gpu-xid-79");
        engine other;
        CHECK(other.absorb(event_of(found[0], 1), 1).number ==
              other.absorb(event_of(*line.fault, 2), 1).number);
    }
}

TEST_CASE("of several that may be lost none is accused", "[fault]") {
    seen_well facts;
    // Both places are empty, and one card says that it is lost.
    const gpu_answers shown{lost("number 0")};
    for (int n = 0; n < 3; ++n) {
        const auto found = facts.after_look(shown);
        CHECK(found.faults.empty());
        CHECK(found.blind ==
              std::set<std::string>{"GPU number 0 is lost or needs a reset, and does not tell which it is"});
    }
    // One that could not be asked may be the one that is missing.
    seen_well unasked;
    CHECK(unasked.looks(3, {well(1), fail(errc::unavailable, "cannot ask GPU number 1: Unknown Error")})
              .empty());
}

TEST_CASE("a GPU that is not shown any more is told, and all of them are a driver that is gone", "[fault]") {
    seen_well facts;
    const auto found = facts.looks(4, {well(1)});
    REQUIRE(found.size() == 1);
    CHECK(found[0].code == code(catalog::symptom::gpu_missing));
    CHECK(found[0].bdf == "0000:02:00");
    CHECK(precedence_of(found[0]) == precedence::alert);
    CHECK(facts.looks(2, two()).empty());
    CHECK(facts.looks(1, {well(1)}).empty());  // a reset
    CHECK(facts.looks(1, two()).empty());
    const auto none = facts.after_look({});
    CHECK(none.faults.empty());
    CHECK(none.blind.size() == 1);
}

TEST_CASE("memory errors that come are told, those that were there are not", "[fault]") {
    auto old = well(2);
    old.uncorrected = 7;
    old.remap_failed = true;
    gpu_facts facts;
    const auto first = facts.after_look(gpu_answers{well(1), old});
    CHECK(first.faults.empty());
    CHECK(first.standing.size() == 2);
    auto more = old;
    more.uncorrected = 9;
    more.remap_pending = true;
    const auto found = facts.after_look(gpu_answers{well(1), more}).faults;
    REQUIRE(found.size() == 2);
    CHECK(found[0].code == code(catalog::symptom::gpu_memory));
    CHECK(
        found[0].message ==
        "NVML: GPU 0000:02:00: 2 memory errors more that were not corrected, 9 since the driver was loaded");
    CHECK(precedence_of(found[0]) == precedence::alert);  // contained or not: the count does not tell
    CHECK(found[1].code == 63);
    CHECK(facts.after_look(gpu_answers{well(1), more}).faults.empty());
    // The driver was loaded anew.
    CHECK(facts.after_look(gpu_answers{well(1), well(2)}).faults.empty());
    auto failed = well(2);
    failed.remap_failed = true;
    const auto row = facts.after_look(gpu_answers{well(1), failed}).faults;
    REQUIRE(row.size() == 1);
    CHECK(row[0].code == 64);
    CHECK(precedence_of(row[0]) == precedence::reset);
    // With the kernel's lines on the same memory it is one incident.
    kernel_parser kernel;
    const auto line = kernel.line(
        "NVRM: Xid (PCI:0000:02:00): 94, pid=7194, name=python3, Contained: SM (0x1). RST: No, D-RST: No");
    engine e;
    const auto number = e.absorb(event_of(*line.fault, 1), 1).number;
    CHECK(e.absorb(event_of(found[0], 2), 1).number == number);
    CHECK(e.absorb(event_of(row[0], 3), 1).number == number);
}

TEST_CASE("what the driver asks for, clocks and links are told after two looks", "[fault]") {
    seen_well facts;
    auto reset = well(2), hot = well(2), link = well(2);
    reset.needs_reset = true;
    hot.slowed = true;
    link.links = {true, false};
    CHECK(facts.looks(1, {well(1), hot}).empty());
    CHECK(facts.looks(1, {well(1), link}).empty());
    CHECK(facts.looks(1, two()).empty());
    const auto slow = facts.looks(3, {well(1), hot});
    REQUIRE(slow.size() == 1);
    CHECK(slow[0].code == code(catalog::symptom::gpu_slow));
    const auto down = facts.looks(3, {well(1), link});
    REQUIRE(down.size() == 1);
    CHECK(down[0].code == 74);
    CHECK(down[0].link == 1);
    CHECK(precedence_of(down[0]) == precedence::alert);
    const auto wanted = facts.looks(3, {well(1), reset});
    REQUIRE(wanted.size() == 1);
    CHECK(wanted[0].code == 154);
    CHECK(wanted[0].recovery == static_cast<std::uint32_t>(recovery::gpu_reset));
    CHECK(precedence_of(wanted[0]) == precedence::reset);
    // A link that never was active is one without a partner.
    gpu_facts fresh;
    for (int n = 0; n < 3; ++n) CHECK(fresh.after_look(gpu_answers{link}).faults.empty());
}

TEST_CASE("NVIDIA's library is asked for all of it", "[fault]") {
    CHECK_FALSE(hardware::open_nvml("libnothing-of-that-name.so.1"));
    ::setenv("FAKE_NVML", "wenlqrpsk", 1);
    auto library = hardware::open_nvml(banyan::testing::built("fake_nvml"));
    REQUIRE(library);
    const auto told = hardware::ask_all(**library);
    REQUIRE(told);
    // What the other process gets is the same.
    const auto all = hardware::gpu_answers_from(hardware::to_json(*told));
    REQUIRE(all);
    REQUIRE(all->size() == 9);
    const auto gpu = [&](std::size_t n) { return all->at(n).value(); };
    CHECK(gpu(0).bus_id == "00000000:01:00.0");
    CHECK(gpu(0).usable());
    CHECK(gpu(0).links == std::vector<bool>{true, true});
    CHECK(gpu(1).uncorrected == 3);
    CHECK(gpu(2).ecc_unknown == "Not Supported");
    CHECK(gpu(3).lost);
    CHECK(gpu(3).bus_id == "number 3");
    CHECK(gpu(4).needs_reset);
    CHECK(gpu(5).remap_failed);
    CHECK(gpu(6).remap_pending);
    CHECK(gpu(7).slowed);
    CHECK(gpu(8).links == std::vector<bool>{true, false});
    ::setenv("FAKE_NVML", "none", 1);
    const auto none = hardware::open_nvml(banyan::testing::built("fake_nvml"));
    REQUIRE_FALSE(none);
    CHECK(none.error().code == errc::conflict);
    CHECK_FALSE(hardware::gpu_answers_from(nlohmann::json::parse(R"({"gpus":[{"bus_id":1}]})")));
}

}  // namespace test_gpu_facts
