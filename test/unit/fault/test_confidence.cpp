// SPDX-License-Identifier: BSD-3-Clause
//
// How sure an incident is of its culprit, by the kind of evidence.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/incident/confidence.hpp"
#include "fault/incident/engine.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_confidence {

using namespace banyan::fault;
using namespace banyan::fault::testing;
using enum confidence;

namespace {

/// Of the one incident that the lines make.
confidence after(const std::vector<std::string>& lines) {
    engine e;
    std::int64_t at = 1'000'000;
    for (const auto& line : lines) {
        at += 10;
        (void)e.absorb(event_of(line, at), at);
    }
    INFO(lines.front());
    REQUIRE(e.all().size() == 1);
    return sureness_of(e.all().begin()->second).how;
}

incident of_the_fabric(object_kind kind, const char* reason) {
    incident i;
    i.object.kind = kind;
    i.reason = reason;
    i.boot_id = "fabric";
    return i;
}

}  // namespace

TEST_CASE("one line of a part is likely, the driver's verdict on the same part is certain", "[fault]") {
    const auto lost = gpu_line(3, "79, GPU has fallen off the bus.");
    const std::string reset = "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)";
    const std::string reboot =
        "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)";
    const std::string p2p = "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)";
    CHECK(after({lost}) == likely);
    CHECK(after({lost, gpu_line(3, reboot)}) == certain);
    CHECK(after({lost, gpu_line(5, reboot)}) == likely);  // it speaks of another GPU
    CHECK(after({gpu_line(3, "48, Double Bit ECC Error")}) == likely);
    CHECK(after({gpu_line(3, "48, Double Bit ECC Error"), gpu_line(3, reset)}) == certain);
    CHECK(after({gpu_line(3, p2p)}) == suspected);
    CHECK(after({gpu_line(3, reset)}) == certain);
}

TEST_CASE("what names one of several is a suspicion", "[fault]") {
    for (const auto* line : {"31, pid=1, name=p, MMU Fault", "74, NVLink: fatal error detected on link 6",
                             "45, pid=1, name=p, Ch 00000008", "9999, what nobody has seen"})
        CHECK(after({gpu_line(1, line)}) == suspected);
    incident i;
    i.reason = silent_reason;
    CHECK(sureness_of(i).how == suspected);
    i.reason = stuck_reason;
    CHECK(sureness_of(i).how == likely);
    i.object.device = "mlx5_0";
    i.object.kind = object_kind::hca;
    for (const auto& [symptom, how] : {std::pair{"hca-health", likely},
                                       {"hca-port-down", suspected},
                                       {"hca-errors", suspected},
                                       {"memory-uncorrected", likely},
                                       {"pcie-fatal", suspected},
                                       {"soft-lockup", suspected},
                                       {"file-system-readonly", suspected},
                                       {"nccl-network", suspected},
                                       {"of a newer release", suspected}}) {
        i.symptom = symptom;
        INFO(symptom);
        CHECK(sureness_of(i).how == how);
    }
}

TEST_CASE("what the fabric lacks at a look is certain, what is inferred from it is not", "[fault]") {
    CHECK(sureness_of(of_the_fabric(object_kind::link, "fabric-link")).how == certain);
    CHECK(sureness_of(of_the_fabric(object_kind::hca, "host-link")).how == certain);
    CHECK(sureness_of(of_the_fabric(object_kind::sw, "fabric-switch")).how == likely);
    CHECK(sureness_of(of_the_fabric(object_kind::node, "host-lost")).how == likely);
    CHECK(sureness_of(of_the_fabric(object_kind::manager, "subnet-manager")).how == likely);
    auto flap = of_the_fabric(object_kind::link, "fabric-link");
    flap.closed_by = fabric_was_back;
    CHECK(sureness_of(flap).how == likely);
    auto told = of_the_fabric(object_kind::link, "fabric-errors");
    told.boot_id = told_by_ufm;
    CHECK(sureness_of(told).how == likely);
}

TEST_CASE("an incident of the history is as sure as it was, and one of an older release says so, too",
          "[fault]") {
    engine e;
    (void)e.absorb(event_of(gpu_line(3, "79, GPU has fallen off the bus.")), 0);
    (void)e.absorb(event_of(gpu_line(3,
                                     "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
                                     "Required)")),
                   0);
    auto text = to_json(e.all().begin()->second);
    CHECK(text["confidence"]["level"] == "certain");
    CHECK(to_json(incident_from(text).value()) == text);
    text.erase("verdict_on_culprit");
    text["confidence"] = 5;
    CHECK(to_json(incident_from(text).value())["confidence"]["level"] == "likely");
}

}  // namespace test_confidence
