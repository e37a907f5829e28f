// SPDX-License-Identifier: BSD-3-Clause
//
// An NVLink goes down: one incident, and the culprit is the GPU whose line says so.
#include <cstdio>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/incident/confidence.hpp"
#include "fault/incident/engine.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_nvlink_storm {

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

constexpr std::int64_t begin = 1'000'000;

// Reasons of a link that went down, as INFO tells them: bits 25 to 20.
std::string link_down(std::uint32_t reason, const char* link = "08") {
    char info[16];
    (void)std::snprintf(info, sizeof info, "0x%08x", reason << 20 | 0x5c6);
    return std::string("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link ") + link + " (" + info +
           " 0x00000000 0x00000000)";
}
constexpr std::uint32_t no_reason = 0, weak_signal = 0b000100, by_software = 0b010001, peer_went = 0b100101;

const std::string lost_packets =
    "145, pid=7, name=python3, RLW_SRC_TRACK Nonfatal XC1 i0 Link -1 (0x000000e2 0x00000004 0x00000000)";
const std::string remapped = "145, RLW_REMAP Nonfatal XC1 i0 Link -1 (0x00000082 0x00000004 0x00000000)";
const std::string parity = "145, RLW_TAGSTATE Fatal XC0 i0 Link -1 (0x00000102 0x00000002 0x00000000)";
const std::string register_74 =
    "74, NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
const std::string undecided = "145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x1 0x2)";

struct bench {
    engine e;
    std::int64_t at = begin;
    std::uint64_t told = 0;

    engine::outcome say(int gpu, const std::string& rest, std::int64_t later = 1) {
        at += later;
        return e.absorb(event_of(gpu_line(gpu, rest), at, ++told), at);
    }
    const incident& only() const {
        REQUIRE(e.all().size() == 1);
        return e.all().begin()->second;
    }
};

}  // namespace

// As it was on eight B200 with driver 570: about 300 lines within 0.4 s, and one GPU broken.
TEST_CASE("eight B200 and a link that went down: one incident, the right GPU, at its first line", "[fault]") {
    bench b;
    const int broken = 5;
    const auto first = b.say(broken, link_down(weak_signal), 0);
    CHECK(first.created);
    CHECK(first.escalated);
    CHECK(b.only().reason == "gpu-reset");
    for (int gpu = 1; gpu <= 8; ++gpu) CHECK_FALSE(b.say(gpu, lost_packets).escalated);
    b.at = begin + 283;
    for (int n = 0; n < 64; ++n)
        b.say(broken, "45, pid=7, name=python3, channel 0x00000008 caused by previous Xid 149", 0);
    for (int gpu = 1; gpu <= 8; ++gpu)
        for (int n = 0; n < 32 && gpu != broken; ++n)
            b.say(gpu, "45, pid=7, name=python3, channel 0x00000009 caused by previous Xid 145", 0);
    b.at = begin + 404;
    SECTION("a reset is what the driver asks for, too") {
        b.say(broken, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", 0);
        CHECK(b.only().reason == "gpu-reset");
        CHECK(sureness_of(b.only()).how == confidence::certain);
    }
    SECTION("the driver's word comes before the table's") {
        CHECK(
            b.say(broken, "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", 0)
                .escalated);
        CHECK(b.only().reason == "gpu-reboot");
        CHECK(b.only().cause.ends_with("; the driver asks for a node reboot"));
    }
    const auto& i = b.only();
    CHECK(i.object.gpu == broken);
    CHECK(i.xid == 149u);
    CHECK(i.cause.starts_with("Xid 149 GPU 5: NVLink error in the network interface, link 8: "));
    CHECK(i.lines == b.told);
    CHECK(b.told > 290);
    // It is read from the history as it was.
    const auto again = incident_from(to_json(i));
    REQUIRE(again);
    CHECK(again->fallen == link_end::unclear);
    CHECK(sureness_of(*again).why == sureness_of(i).why);
}

TEST_CASE("healthy peers that are heard first are no culprits", "[fault]") {
    bench b;
    for (int gpu = 1; gpu <= 4; ++gpu) b.say(gpu, lost_packets);
    CHECK(b.only().reason == "gpu-app");
    CHECK(b.say(5, link_down(no_reason)).escalated);
    CHECK(b.only().object.gpu == 5);
    CHECK(b.only().reason == "gpu-reset");
}

TEST_CASE("of two ends of a link the one that did not blame the other is accused", "[fault]") {
    bench b;
    SECTION("whichever is heard first") {
        b.say(2, link_down(peer_went));
        CHECK(sureness_of(b.only()).how == confidence::suspected);
        CHECK(b.only().cause.ends_with("the other end of the link went down first"));
        b.say(5, link_down(by_software));
    }
    SECTION("or later") {
        b.say(5, link_down(by_software));
        CHECK_FALSE(b.say(2, link_down(peer_went)).escalated);
    }
    CHECK(b.only().object.gpu == 5);
    CHECK(sureness_of(b.only()).how == confidence::likely);
}

TEST_CASE("both ends of a link with a weak signal are one incident; faults of their own are not", "[fault]") {
    bench b;
    b.say(5, link_down(weak_signal));
    b.say(2, link_down(weak_signal));
    CHECK(b.only().object.gpu == 5);
    CHECK(sureness_of(b.only()).how == confidence::suspected);
    SECTION("hardware of another GPU") {
        CHECK(b.say(3, parity).created);
        CHECK(b.e.all().size() == 2);
    }
    SECTION("another link that went down by itself, after the window") {
        CHECK(b.say(3, link_down(by_software), 31'000).created);
    }
}

TEST_CASE("what a fallen link explains is secondary for 30 s", "[fault]") {
    bench b;
    b.say(5, link_down(by_software));
    for (const auto& line : {remapped, register_74, undecided}) CHECK_FALSE(b.say(3, line).escalated);
    CHECK(b.only().object.gpu == 5);
    CHECK(b.say(3, register_74, 31'000).created);
    CHECK(b.e.all().rbegin()->second.reason == "gpu-nvlink");
}

TEST_CASE("a switch that fails is the culprit beside the GPUs that hear of it", "[fault]") {
    bench b;
    b.say(3, register_74);
    b.say(4, register_74);
    b.at += 1;
    (void)b.e.absorb(
        event_of("nvidia-nvswitch0: SXid (PCI:0000:09:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", b.at),
        b.at);
    CHECK(b.only().object.kind == object_kind::sw);
    b.say(5, register_74);
    CHECK(b.only().object.kind == object_kind::sw);
    CHECK(b.only().reason == "nvswitch");
}

TEST_CASE("an error that the driver is to judge is the application's where it says nothing", "[fault]") {
    bench b;
    const auto out = b.say(3, remapped);
    CHECK(b.only().reason == "gpu-app");
    SECTION("it asks for a reset") {
        CHECK(b.say(3, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
                  .escalated);
        CHECK(b.only().number == out.number);
        CHECK(b.only().reason == "gpu-reset");
        CHECK(b.only().cause.starts_with("Xid 145 GPU 3"));
        CHECK(b.only().cause.ends_with("; the driver asks for a GPU reset"));
    }
    SECTION("it asks for nothing") {
        CHECK_FALSE(b.say(3, "154, GPU recovery action changed from 0x0 (None) to 0x0 (None)").escalated);
        CHECK(b.only().reason == "gpu-app");
    }
}

}  // namespace test_nvlink_storm
