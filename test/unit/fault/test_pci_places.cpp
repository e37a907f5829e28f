// SPDX-License-Identifier: BSD-3-Clause
//
// Which GPUs and HCAs share a PCIe switch, and what becomes of it when several of them are lost at once.
#include <cstdlib>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/agent/place_watch.hpp"
#include "fault/incident/confidence.hpp"
#include "fault/incident/engine.hpp"
#include "test/built.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_pci_places {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

// What libhwloc takes for the machine: two packages, four PCIe switches with two GPUs and two HCAs each.
class machine {
  public:
    explicit machine(const std::string& xml) { ::setenv("HWLOC_XMLFILE", xml.c_str(), 1); }
    ~machine() { ::unsetenv("HWLOC_XMLFILE"); }
};

const std::string node_xml = banyan::testing::fixture("export/hwloc-2p8g8h.xml");

struct bench {
    asio::io_context io;
    config settings = load_config({}, "n03").value();
    place_watch places{io, settings, std::make_shared<metrics>()};
    engine e;
    std::uint64_t told = 0;

    bench() {
        const machine here(node_xml);
        const auto all = hardware::look_at_pci();
        REQUIRE(all);
        REQUIRE(places.after_look(hardware::to_json(*all)));
    }
    engine::outcome say(const std::string& line, std::int64_t at) {
        auto one = event_of(line, at, ++told);
        REQUIRE_FALSE(one.node.empty());
        one.place = places.of(one.fault.bdf);
        const auto over =
            event_from(nlohmann::json::parse(to_json(one).dump()));  // as the controller gets it
        REQUIRE(over);
        CHECK(over->place == one.place);
        return e.absorb(*over, at);
    }
    const incident& only() const {
        REQUIRE(e.all().size() == 1);
        return e.all().begin()->second;
    }
};

std::string gpu_lost(const std::string& bdf) {
    return "NVRM: Xid (PCI:" + bdf + "): 79, GPU has fallen off the bus.";
}
std::string hca_lost(const std::string& bdf) {
    return "mlx5_core " + bdf +
           ".0: poll_health:855:(pid 0): device's health compromised - reached miss count";
}

}  // namespace

TEST_CASE("libhwloc tells which GPUs and HCAs share a PCIe switch and a NUMA node", "[fault]") {
    const machine here(node_xml);
    const auto all = hardware::look_at_pci();
    REQUIRE(all);
    CHECK(all->size() == 17);  // of which one is a display, and no GPU of ours
    const auto find = [&](const std::string& bdf) {
        for (const auto& p : *all)
            if (p.bdf == bdf) return p;
        return hardware::pci_place{};
    };
    CHECK(find("0000:13:00") == hardware::pci_place{"0000:13:00", "", "0000:11:00.0", 0});
    CHECK(find("0000:14:00") == hardware::pci_place{"0000:14:00", "mlx5_0", "0000:11:00.0", 0});
    CHECK(find("0000:95:00") == hardware::pci_place{"0000:95:00", "", "0000:91:00.0", 1});
    // It has a port of the processor's for itself.
    CHECK(find("0000:f0:00") == hardware::pci_place{"0000:f0:00", "mlx5_8", "", 1});
    CHECK(find("0000:40:00").bdf.empty());
    CHECK(hardware::pci_places_from(hardware::to_json(*all)).value() == *all);
}

TEST_CASE("where libhwloc cannot look it is said, and nobody is accused by it", "[fault]") {
    bench b;
    place_watch blind(b.io, b.settings, std::make_shared<metrics>());
    const auto told = GENERATE(result<nlohmann::json>(fail(errc::unavailable, "no answer within 20 s")),
                               result<nlohmann::json>({{"devices", "x"}}));
    CHECK_FALSE(blind.after_look(told));
    CHECK(blind.blind().size() == 1);
    CHECK(blind.blind().begin()->starts_with("which GPUs and HCAs share a PCIe switch is not known: "));
    CHECK_FALSE(blind.of("0000:13:00"));
    engine e;
    (void)e.absorb(event_of(gpu_lost("0000:13:00"), 1'000'000, 1), 1);
    (void)e.absorb(event_of(gpu_lost("0000:15:00"), 1'000'001, 2), 2);
    REQUIRE(e.all().size() == 1);
    CHECK(e.all().begin()->second.object.kind == object_kind::gpu);
}

TEST_CASE("GPUs and HCAs below one PCIe switch that are lost together accuse the switch", "[fault]") {
    bench b;
    const auto first = b.say(hca_lost("0000:14:00"), 1'000'000);
    CHECK(b.only().object.kind == object_kind::hca);
    CHECK(b.only().place->text() ==
          "PCIe switch 0000:11:00.0 with GPU at 0000:13:00, GPU at 0000:15:00, mlx5_1; NUMA node 0");
    const auto second = b.say(gpu_lost("0000:13:00"), 1'000'100);
    CHECK(second.number == first.number);
    CHECK(second.escalated);  // a GPU off the bus asks for more than an HCA
    {
        const auto& i = b.only();
        CHECK(i.object.kind == object_kind::node);
        CHECK(i.object.text() == "n03 PCIe switch 0000:11:00.0");
        CHECK(i.reason == "pcie");
        CHECK(i.symptom == "pcie-switch");
        CHECK(i.severity == severity::fatal);
        CHECK(i.cause ==
              "PCIe switch 0000:11:00.0: 2 of the 4 cards below it were lost together: mlx5_0, GPU at "
              "0000:13:00");
        CHECK(sureness_of(i).how == confidence::suspected);
    }
    // The cards go on about it, now and when the node is out.
    CHECK(
        b.say("NVRM: Xid (PCI:0000:13:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Reboot)",
              1'000'200)
            .number == first.number);
    CHECK_FALSE(b.say(gpu_lost("0000:13:00"), 1'000'300).escalated);
    CHECK_FALSE(b.say(gpu_lost("0000:15:00"), 1'000'400).escalated);
    b.e.find(first.number)->node_out_ms = 1'000'500;
    CHECK(b.say(hca_lost("0000:16:00"), 1'000'600).number == first.number);
    CHECK(b.say(gpu_lost("0000:15:00"), 9'000'000).number == first.number);
    const auto& i = b.only();
    CHECK(i.lost.size() == 4);
    CHECK(sureness_of(i).how == confidence::likely);
    CHECK(i.symptom == "pcie-switch");
    const auto kept = incident_from(to_json(i));
    REQUIRE(kept);
    CHECK(kept->place == i.place);
    CHECK(kept->lost == i.lost);
    CHECK(sureness_of(*kept).how == confidence::likely);
}

TEST_CASE("what decides about an accused switch is the line that weighs more, or comes anew", "[fault]") {
    bench b;
    constexpr std::int64_t minute = 60'000;
    const auto number = b.say(hca_lost("0000:14:00"), 1'000'000).number;
    CHECK_FALSE(b.say(hca_lost("0000:16:00"), 1'000'100).escalated);
    CHECK(b.only().line_ms == 1'000'000);
    CHECK(b.say(gpu_lost("0000:13:00"), 1'020'000).escalated);
    CHECK(b.only().line_ms == 1'020'000);
    // The node is out. Somebody returns it, and closes nothing.
    b.e.find(number)->node_out_ms = 1'020'100;
    CHECK_FALSE(b.say(gpu_lost("0000:13:00"), 1'030'000).escalated);
    CHECK(b.only().line_ms == 1'020'000);
    SECTION("the same card is lost") {
        CHECK(b.say(gpu_lost("0000:13:00"), 1'030'000 + minute).escalated);
        CHECK(b.only().line_ms == 1'030'000 + minute);
    }
    SECTION("the same card meets another fault") {
        CHECK(b.say("NVRM: Xid (PCI:0000:13:00): 48, DBE (double bit error) ECC Error", 1'030'000 + minute)
                  .escalated);
        CHECK(b.only().line_ms == 1'030'000 + minute);
        CHECK(b.only().symptom == "pcie-switch");
    }
    SECTION("what asks for nothing does not") {
        CHECK_FALSE(
            b.say("NVRM: Xid (PCI:0000:13:00): 31, pid=1, name=p, MMU Fault", 1'030'000 + minute).escalated);
        CHECK(b.only().line_ms == 1'020'000);
    }
    CHECK(b.only().lost.size() == 3);
}

TEST_CASE("a sweep's verdict does not outlive the fault that it was made for", "[fault]") {
    bench b;
    const auto number = b.say("NVRM: Xid (PCI:0000:13:00): 94, Contained", 1'000'000).number;
    b.e.find(number)->swept = "fit";
    b.say("NVRM: Xid (PCI:0000:13:00): 94, Contained", 1'000'100);
    CHECK(b.only().swept == "fit");
    b.say(gpu_lost("0000:13:00"), 1'000'200);
    CHECK(b.only().swept.empty());
    // The driver's verdict speaks of the same fault.
    b.e.find(number)->swept = "unfit";
    b.say("NVRM: Xid (PCI:0000:13:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Reboot)",
          1'000'300);
    CHECK(b.only().swept == "unfit");
    b.say(hca_lost("0000:14:00"), 1'000'400);
    CHECK(b.only().symptom == "pcie-switch");
    CHECK(b.only().swept.empty());
    b.e.find(number)->swept = "fit";
    b.say(hca_lost("0000:14:00"), 1'000'500);
    CHECK(b.only().swept == "fit");
}

TEST_CASE("cards of several switches, or at several times, accuse no switch", "[fault]") {
    bench b;
    const auto first = b.say(gpu_lost("0000:13:00"), 1'000'000);
    SECTION("another switch") {
        CHECK(b.say(gpu_lost("0000:53:00"), 1'000'100).number == first.number);
        CHECK(b.only().object.bdf == "0000:13:00");
    }
    SECTION("a card with a port of its own") { CHECK(b.say(hca_lost("0000:f0:00"), 1'000'100).created); }
    SECTION("long after") {
        CHECK(b.say(hca_lost("0000:14:00"), 1'031'000).created);
        CHECK(b.e.find(first.number)->object.kind == object_kind::gpu);
    }
    SECTION("an error that a card met") {
        b.say("NVRM: Xid (PCI:0000:15:00): 95, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No",
              1'000'100);
        CHECK(b.e.find(first.number)->object.bdf == "0000:13:00");
    }
    SECTION("the same card twice") {
        b.say("NVRM: GPU 0000:13:00.0: GPU has fallen off the bus.", 1'000'100);
        CHECK(b.only().object.kind == object_kind::gpu);
    }
}

}  // namespace test_pci_places
