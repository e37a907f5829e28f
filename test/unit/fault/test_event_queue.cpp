// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>

#include <catch2/catch.hpp>

#include "common/text.hpp"
#include "fault/agent/event_queue.hpp"
#include "test/built.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_event_queue {

using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("events stay until they are confirmed", "[fault]") {
    event_queue q;
    for (unsigned n = 0; n < 3; ++n) CHECK(q.push(event_of(gpu_line(static_cast<int>(n), "79, x"), 1000, n)));
    CHECK(q.front(2).size() == 2);
    CHECK(q.front(2)[0].position == 0);
    q.confirm(2);
    CHECK(q.front(10).size() == 1);
    CHECK(q.front(10)[0].position == 2);
}

TEST_CASE("a storm of equal lines keeps memory flat and is counted", "[fault]") {
    std::uint64_t told = 0;
    event_queue storm;
    const auto line = event_of(gpu_line(1, "95, Uncontained: x"), 1000);
    for (unsigned n = 0; n < 10'000; ++n) storm.push(line);
    for (int gpu = 2; gpu < 8; ++gpu)
        CHECK(storm.push(event_of(gpu_line(gpu, "95, y"), 1000)));  // none of the others is lost
    storm.flush_repeats(20'000);
    for (const auto& e : storm.front(1000)) told += 1 + e.repeats;
    CHECK(told == 10'006);
    CHECK(storm.size() < 20);
}

TEST_CASE("a full queue gives up what matters least", "[fault]") {
    event_queue q(4);
    for (unsigned n = 0; n < 4; ++n) q.push(event_of(gpu_line(static_cast<int>(n), "13, x"), 1000, n));
    CHECK(q.push(event_of(gpu_line(7, "79, x"), 1000, 99)));
    CHECK(q.size() == 4);
    CHECK(q.dropped() == 1);
    CHECK(q.front(10).back().fault.code == 79);
    q.push(event_of(gpu_line(8, "13, x"), 1000, 100));
    CHECK(q.size() == 4);
    CHECK(q.front(10).back().fault.code == 79);
}

TEST_CASE("what waited while the clock was set is as old as before", "[fault]") {
    event e;
    e.line_ms = 1'000'000;
    e.clock_gap_ms = 400'000;
    CHECK(by_the_clock_of_now(e, 400'000).line_ms == 1'000'000);
    CHECK(by_the_clock_of_now(e, 400'003).line_ms == 1'000'000);  // two clocks are not read at one moment
    CHECK(by_the_clock_of_now(e, 1'600'000).line_ms == 2'200'000);
    CHECK(by_the_clock_of_now(e, -200'000).line_ms == 400'000);
    CHECK(by_the_clock_of_now(e, -2'000'000).line_ms == 0);
}

namespace {

/// All that the queue gives out in the end, in its order.
std::vector<event> all_of(event_queue& q) {
    q.flush_repeats(INT64_MAX);
    return q.front(10'000);
}

event port(catalog::symptom what, std::int64_t at_ms, const char* name = "mlx5_0 1") {
    event e;
    e.node = "n03";
    e.line_ms = at_ms;
    e.fault = symptom_at(what, "0000:3b:00.0", "mlx5_0", "x");
    e.fault.port = name;
    return e;
}

/// A line on an NVLink whose registers ask for that, as NVIDIA's table has it.
event link_event(std::uint32_t xid, const std::string& action) {
    std::ifstream file(banyan::testing::fixture("fault/nvlink5.table"));
    for (std::string line; std::getline(file, line);) {
        const auto parts = banyan::split(line, '\t');
        if (line.starts_with('#') || parts.size() != 4 || parts[2] != action) continue;
        kernel_parser parser;
        parser.set_branch(static_cast<std::uint32_t>(*banyan::parse_number(parts[1], 9'999)));
        const auto found = parser.line(parts[3]).fault;
        if (!found || found->code != xid) continue;
        event e;
        e.line_ms = 1000;
        e.fault = *found;
        return e;
    }
    return {};
}

}  // namespace

TEST_CASE("a burst hides no line that weighs more, or speaks of another part", "[fault]") {
    const auto switch_line = [](const std::string& how) {
        return event_of("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, " + how + ", Link 32 x", 1000);
    };
    const auto instance = [](int n) {
        return event_of("NVRM: Xid (PCI:0000:03:00 GPU-I:0" + std::to_string(n) + "): 95, Uncontained: x",
                        1000);
    };
    struct {
        event common, grave;
    } const cases[] = {
        {switch_line("Non-fatal"), switch_line("Fatal")},
        {link_event(145, "IGNORE"), link_event(145, "RESET_GPU")},
        {link_event(149, "IGNORE"), link_event(149, "RESET_GPU")},
        {instance(1), instance(2)},
    };
    for (const auto& one : cases) {
        INFO(one.grave.text);
        REQUIRE(one.common.fault.code != 0);
        REQUIRE(one.common.fault.code == one.grave.fault.code);
        event_queue q;
        for (int n = 0; n < 8; ++n) q.push(one.common);
        q.push(one.grave);
        q.push(one.common);
        const auto told = all_of(q);
        const auto graves = std::ranges::count_if(told, [&](const event& e) {
            return e.fault.severity == one.grave.fault.severity &&
                   e.fault.gpu_instance == one.grave.fault.gpu_instance &&
                   precedence_of(e.fault) == precedence_of(one.grave.fault);
        });
        CHECK(graves >= 1);
        CHECK(told.size() < 12);
    }
}

TEST_CASE("the last that is told of a port that flaps is what it is", "[fault]") {
    using catalog::symptom;
    const bool ends_down = GENERATE(true, false);
    const int flaps = GENERATE(3, 9, 40);
    const auto* const kernel = GENERATE("mlx5_0 1", "");  // it names no port
    INFO(flaps << (ends_down ? " down" : " up"));
    event_queue q;
    std::int64_t at = 1000;
    for (int n = 0; n < flaps; ++n) {
        q.push(port(symptom::hca_port_down, at += 400, kernel));
        q.push(port(symptom::hca_port_up, at += 100));
        q.flush_repeats(at);
    }
    if (ends_down) q.push(port(symptom::hca_port_down, at += 400, kernel));
    const auto told = all_of(q);
    const auto last = ends_down ? symptom::hca_port_down : symptom::hca_port_up;
    CHECK(told.back().fault.code == static_cast<std::uint32_t>(last));
    std::uint64_t count = 0;
    for (std::size_t n = 0; n < told.size(); ++n) {
        count += 1 + told[n].repeats;
        if (n > 0) CHECK(told[n - 1].line_ms <= told[n].line_ms);
    }
    CHECK(count == static_cast<std::uint64_t>(2 * flaps + (ends_down ? 1 : 0)));
    CHECK(told.size() < 40);
}

}  // namespace test_event_queue
