// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller makes of a fabric that it sees and of logs that tell of it.
#include <catch2/catch.hpp>

#include "test/built.hpp"
#include "test/unit/fault/fabric_bench.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_fabric_incidents {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a dead subnet manager is an incident, and nothing is drained for it", "[fault]") {
    fabric_bench b;
    b.start();
    CHECK(b.all().empty());
    b.dead();
    b.opensm("Exiting SM");  // it is asked at once
    REQUIRE(b.until([&] { return b.has(1, true); }));
    const auto i = b.all().front();
    CHECK(i.object.kind == object_kind::manager);
    CHECK(i.object.text() == "subnet manager LID 1 (0x00000000000000a1)");
    CHECK(i.reason == manager_reason);
    CHECK(i.severity == severity::error);
    CHECK(i.rule == "subnet-manager");
    CHECK(i.decided == static_cast<std::uint8_t>(step_kind::alert));
    CHECK(i.evidence.back().text.find("failed: query") != std::string::npos);
    CHECK(b.slurm.calls.empty());
    // It is back; it dies again: the same fault, with a count.
    b.master(1, "a1");
    REQUIRE(b.until([&] { return b.has(1, false); }));
    CHECK(b.all().front().closed_by == "the fabric: the subnet manager answers again");
    b.dead();
    b.opensm("Exiting SM");
    REQUIRE(b.until([&] { return b.has(1, true); }));
    CHECK(b.all().front().flaps == 1);
    // Another takes over: the fabric is managed, and the first is still gone.
    b.master(3, "c3");
    REQUIRE(b.until([&] { return b.all().front().severity == severity::warning; }));
    CHECK(b.has(1, true));
    CHECK(b.all().front().cause.find("LID 3 (0x00000000000000c3) is") != std::string::npos);
}

TEST_CASE("whoever cannot see the fabric does not say that nobody manages it", "[fault]") {
    fabric_bench b;
    b.settings.fabric_dump_timeout = std::chrono::milliseconds(2000);
    b.start();
    b.dead();
    std::filesystem::remove(b.dir / "fabric");  // this host's own link is lost
    b.opensm("Exiting SM");
    b.pass(std::chrono::milliseconds(1600));
    CHECK(b.all().empty());
}

TEST_CASE("a port that the manager names is the culprit, with both ends, also when it is back", "[fault]") {
    fabric_bench b;
    b.start();
    const std::string port =
        "osm_pi_rcv_process: Switch 0xfc6a1c0300000200 MF0;leaf-08:MQM9790/U1 port 33 changed state from ";
    for (int flap = 0; flap < 5; ++flap) {
        b.opensm(port + "ACTIVE to DOWN");
        b.opensm("SUBNET UP");
        REQUIRE(
            b.until([&] { return b.has(1, false) && b.all()[0].flaps == static_cast<std::uint64_t>(flap); }));
    }
    const auto i = b.all().front();
    CHECK(i.object.kind == object_kind::link);
    REQUIRE(i.object.ends.size() == 2);
    CHECK(i.object.text().find("leaf-08") != std::string::npos);
    CHECK(i.object.text().find("port 33") != std::string::npos);
    CHECK(i.object.text().find("spine-01") != std::string::npos);
    CHECK(i.closed_by == "the fabric: it was back at once");
    // UFM tells of the same cable, which now stays down: the same incident.
    std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
    std::ofstream out(b.dir / "new");
    std::string section;
    for (std::string line; std::getline(in, line); out << line << "\n") {
        if (line.starts_with("Switch")) section = line;
        if (line.starts_with("[33]") && section.find("leaf-08") != std::string::npos) line = "";
        if (line.starts_with("[29]\t\"S-fc6a1c0300000200\"")) line = "";
    }
    out.close();
    std::filesystem::rename(b.dir / "new", b.dir / "fabric");
    b.say("ufm.log",
          "2023-12-20 07:46:24.442 [9021] [329] WARNING [Link] IBPort [Default / Switch: leaf-08 / 1/17/1] "
          "[dev_id: "
          "fc6a1c0300000200]: Link went down: (Switch:leaf-08:1/17/1)fc6a1c0300000200:33 - "
          "(Switch:spine-01:1/15/1)fc6a1c0300000240:29, cable S/N: MT2243VS00123");
    REQUIRE(b.until([&] { return b.has(1, true); }));
    CHECK(b.all().front().evidence.back().source == "ufm");
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("errors of a port are one incident, however often UFM counts them", "[fault]") {
    fabric_bench b;
    b.start();
    for (int n = 0; n < 20; ++n)
        b.say(
            "ufm.log",
            "2023-12-20 07:46:24 [" + std::to_string(n) +
                "] [917] CRITICAL [Hardware] IBPort [Default / Switch: T3 / 1/2/1] [dev_id: ab]: Symbol BER "
                "\x1b[2J high");
    REQUIRE(b.until([&] { return b.has(1, true) && b.all().front().lines == 20; }));
    const auto i = b.all().front();
    CHECK(i.reason == "fabric-errors");
    CHECK(i.cause == "UFM: bit-errors at T3 1/2/1");
    CHECK(i.evidence.back().text.find('\x1b') == std::string::npos);
    CHECK(i.decided == static_cast<std::uint8_t>(step_kind::alert));
    // A look at the fabric, which shows no errors, does not close it.
    b.opensm("drop_mgr_remove_port: Removed port with GUID:0x1 LID range [24, 24] of node:x");
    b.opensm("SUBNET UP");
    b.pass(std::chrono::milliseconds(300));
    CHECK(b.has(1, true));
}

TEST_CASE("the policy is read again, and a wrong one changes nothing", "[fault]") {
    fabric_bench b;
    const auto file = b.dir / "policy.toml";
    const auto write = [&](const std::string& action) {
        std::ofstream(file) << "[[rule]]\nname = \"all\"\naction = \"" << action << "\"\n";
    };
    write("log");
    b.settings.policy = file.string();
    b.start();
    const auto reload = [&] {
        asio::co_spawn(b.io, b.daemon->reload_policy(), asio::detached);
        b.pass(std::chrono::milliseconds(100));
        return b.daemon->look().rules.rules().front().name;
    };
    CHECK(reload() == "all");
    write("dran");
    CHECK(reload() == "all");
    std::filesystem::remove(file);
    CHECK(reload() == "all");
    std::filesystem::create_directory(file);
    CHECK(reload() == "all");
    std::filesystem::remove(file);
    std::ofstream(file) << "[[rule]]\nname = \"new\"\naction = \"drain\"\n";
    CHECK(reload() == "new");
    b.slurm.nodes["n03"] = {"n03", false, false, ""};
    asio::co_spawn(b.io, b.daemon->take_events("n03", {event_of(gpu_line(3, "13, x"), clock::wall_ms(), 1)}),
                   asio::detached);
    REQUIRE(b.until([&] { return b.has(1, true); }));
    CHECK(b.all().front().rule == "new");
}

}  // namespace test_fabric_incidents
