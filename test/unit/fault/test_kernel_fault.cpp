// SPDX-License-Identifier: BSD-3-Clause
//
// Every form of the driver's lines that faults are read from, and what must not be taken for one.
#include <random>

#include <catch2/catch.hpp>

#include "fault/sources/gpu_map.hpp"
#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/kernel_log.hpp"

namespace test_kernel_fault {

using namespace banyan::fault;

namespace {

std::optional<kernel_fault> parse(std::string_view line) {
    kernel_parser parser;
    kernel_log log(kmsg_trust::injected, false);
    std::optional<kernel_fault> out;
    log.read(line, [&](std::string_view text) { out = parser.line(text).fault; });
    return out;
}

struct form {
    const char* line;
    std::uint32_t code;
    const char* bdf;
    const char* pid;
    const char* process;
    const char* message;
};

}  // namespace

TEST_CASE("Xid lines of all branches", "[fault]") {
    const form forms[] = {
        {"NVRM: Xid (0000:5d:00): 14, Channel 00000001", 14, "0000:5d:00", "", "", "Channel 00000001"},
        {"NVRM: Xid (PCI:0000:5D:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 79,
         "0000:5d:00", "<unknown>", "<unknown>", "GPU has fallen off the bus."},
        {"NVRM: Xid (PCI:0000:5d:00): 63, pid=12, Row Remapper: New row marked for remapping, reset gpu to "
         "activate.",
         63, "0000:5d:00", "12", "", "Row Remapper: New row marked for remapping, reset gpu to activate."},
        {"NVRM: Xid (PCI:0000:5d:00): 119, pid=7, name=python3, Timeout after 6s of waiting for RPC response "
         "from GPU4 GSP! "
         "Expected function 103 (GSP_RM_ALLOC) (0x1 0x2).",
         119, "0000:5d:00", "7", "python3",
         "Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) "
         "(0x1 0x2)."},
        {"NVRM: Xid (PCI:0000:5d:00 GPU-I:05): 94, pid=1, name=a.out, Contained: CE User Channel (0x9). RST: "
         "No, D-RST: No",
         94, "0000:5d:00", "1", "a.out", "Contained: CE User Channel (0x9). RST: No, D-RST: No"},
        {"NVRM: Xid (PCI:0000:5d:00 GPU-I:05 GPU-CI:00): 95, pid=1, name=a, Uncontained: LTC TAG (0x2, 0x1). "
         "RST: Yes, D-RST: No",
         95, "0000:5d:00", "1", "a", "Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No"},
        {"NVRM: Xid (PCI:0004:01:00.0): 31, pid=5, name=x, y z, Ch 00000008, intr 10000000. MMU Fault", 31,
         "0004:01:00", "5", "x, y z", "Ch 00000008, intr 10000000. MMU Fault"},
        {"[ 1234.567890] [ T1946] NVRM: Xid (PCI:0000:5d:00): 48, pid=9, name=t, DBE (double bit error) on "
         "FBPA",
         48, "0000:5d:00", "9", "t", "DBE (double bit error) on FBPA"},
        {"Nov 21 02:00:01 gpu7 kernel: NVRM: Xid (PCI:0000:5d:00): 13, pid=3, name=job, Graphics Exception",
         13, "0000:5d:00", "3", "job", "Graphics Exception"},
        {"NVRM: Xid (PCI:0000:5d:00): 999", 999, "0000:5d:00", "", "", ""},
    };
    for (const auto& f : forms) {
        CAPTURE(f.line);
        const auto got = parse(f.line);
        REQUIRE(got);
        CHECK(got->kind == fault_kind::xid);
        CHECK(got->code == f.code);
        CHECK(got->bdf == f.bdf);
        CHECK(got->pid == f.pid);
        CHECK(got->process == f.process);
        CHECK(got->message == f.message);
    }
}

TEST_CASE("MIG instances are read", "[fault]") {
    const auto got = parse("NVRM: Xid (PCI:0000:5d:00 GPU-I:05 GPU-CI:02): 94, pid=1, name=a, Contained: x");
    REQUIRE(got);
    CHECK(got->gpu_instance == 5u);
    CHECK(got->compute_instance == 2u);
}

TEST_CASE("154 is read by its number, 45 by its cause", "[fault]") {
    const char* names[] = {"(Node Reboot Required)", "(OS Reboot)", "(anything, to 0x9)"};
    CHECK(parse(std::string("NVRM: Xid (PCI:0000:5d:00): 154, pid=1, name=p, GPU recovery action changed "
                            "from 0x0 (None) to 0x2 ") +
                names[0])
              ->recovery == 2u);
    CHECK(parse(std::string(
                    "NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 ") +
                names[1])
              ->recovery == 2u);
    CHECK(parse(std::string(
                    "NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 ") +
                names[2])
              ->recovery == 2u);
    CHECK_FALSE(parse("NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed")->recovery);
    CHECK(
        parse("NVRM: Xid (PCI:0000:5d:00): 45, pid=1, name=p, channel 0x00000008 caused by previous Xid 149")
            ->caused_by == 149u);
    CHECK_FALSE(parse("NVRM: Xid (PCI:0000:5d:00): 45, pid=1, name=p, Ch 00000008")->caused_by);
}

TEST_CASE("links are read, also none and -1", "[fault]") {
    CHECK(parse("NVRM: Xid (PCI:0000:5d:00): 74, pid=1, name=p, NVLink: fatal error detected on link 14(0x0, "
                "0x0)")
              ->link == 14);
    CHECK(parse("NVRM: Xid (PCI:0000:5d:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link -1 (0x1 0x2)")->link ==
          -1);
    CHECK_FALSE(parse("NVRM: Xid (PCI:0000:5d:00): 119, Timeout")->link);
}

TEST_CASE("fallen off the bus without a number", "[fault]") {
    auto got = parse("NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.");
    REQUIRE(got);
    CHECK(got->kind == fault_kind::bus_loss);
    CHECK(got->code == 79);
    CHECK(got->bdf == "0000:5d:00");

    kernel_parser parser;
    CHECK_FALSE(parser.line("NVRM: The NVIDIA GPU 0000:9a:00.0").fault);
    CHECK_FALSE(parser.line("NVRM: (PCI ID: 10de:2330) installed in this system has").fault);
    got = parser.line("NVRM: fallen off the bus and is not responding to commands.").fault;
    REQUIRE(got);
    CHECK(got->bdf == "0000:9a:00");
    CHECK_FALSE(parser.line("NVRM: fallen off the bus and is not responding to commands.").fault);
}

TEST_CASE("a card tells its place", "[fault]") {
    kernel_parser parser;
    const auto got = parser.line("NVRM: GPU at PCI:0000:5d:00: GPU-11111111-2222-3333-4444-555555555555");
    REQUIRE(got.identity);
    CHECK(got.identity->bdf == "0000:5d:00");
    CHECK(got.identity->uuid == "GPU-11111111-2222-3333-4444-555555555555");
    CHECK_FALSE(got.fault);
}

TEST_CASE("the line after tells the board's serial number", "[fault]") {
    constexpr auto place = "NVRM: GPU at PCI:0000:00:06: GPU-39782d54-04bb-39cb-ce12-2ba3b45aaf7d";
    constexpr auto number = "NVRM: GPU Board Serial Number: 1653824017239";
    kernel_parser parser;
    CHECK_FALSE(parser.line(number).identity);  // whose?
    gpu_map cards;
    cards.learn(parser.line(place).identity.value());
    cards.learn(parser.line(number).identity.value());
    REQUIRE(cards.find("0000:00:06"));
    CHECK(cards.find("0000:00:06")->uuid == "GPU-39782d54-04bb-39cb-ce12-2ba3b45aaf7d");
    CHECK(cards.find("0000:00:06")->serial == "1653824017239");
    CHECK_FALSE(parser.line(number).identity);

    parser.line(place);
    parser.line("NVRM: Xid (PCI:0000:00:06): 43, pid=980, name=xid, channel 0x0000000a");
    CHECK_FALSE(parser.line(number).identity);  // not the line after

    cards.learn({"0000:00:06", "GPU-another", {}});
    CHECK(cards.find("0000:00:06")->serial.empty());
}

TEST_CASE("SXid lines: severity and link are optional", "[fault]") {
    auto got = parse(
        "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error "
        "(First)");
    REQUIRE(got);
    CHECK(got->kind == fault_kind::sxid);
    CHECK(got->code == 12028);
    CHECK(got->severity == link_severity::nonfatal);
    CHECK(got->link == 32);
    CHECK_FALSE(got->follow_up);
    CHECK(parse("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Severity 1 Engine instance 60 Sub-engine "
                "instance 00")
              ->follow_up);
    CHECK(parse("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Data {0x00000004}")->follow_up);
    got = parse("nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 26006, SOE HALTED");
    REQUIRE(got);
    CHECK(got->severity == link_severity::none);
    CHECK_FALSE(got->link);
    got = parse("nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 10003, Correctable, text, instance=0, chiplet=5");
    REQUIRE(got);
    CHECK(got->severity == link_severity::correctable);
}

TEST_CASE("addresses have several forms", "[fault]") {
    CHECK(take_bdf("00000000:86:00.0")->first == "0000:86:00");
    CHECK(take_bdf("86:00")->first == "0000:86:00");
    CHECK(take_bdf("0004:01:00.0 rest")->second == " rest");
    CHECK_FALSE(take_bdf("zz"));
    CHECK_FALSE(take_bdf(""));
}

TEST_CASE("half lines and noise are no faults", "[fault]") {
    const char* lines[] = {"",
                           "NVRM:",
                           "NVRM: Xid",
                           "NVRM: Xid (",
                           "NVRM: Xid (PCI:",
                           "NVRM: Xid (PCI:0000:5d:00",
                           "NVRM: Xid (PCI:0000:5d:00)",
                           "NVRM: Xid (PCI:0000:5d:00): ",
                           "NVRM: Xid (PCI:0000:5d:00): x",
                           "NVRM: Xid (PCI:0000:5d:00): -79, x",
                           "NVRM: Xid (PCI:0000:5d:00): 99999999999999999999, x",
                           "NVRM: Xid (PCI:0000:5d:00): 0, x",
                           "NVRM: Xid (hello): 79, x",
                           "SXid (",
                           "SXid (PCI:0000:86:00.0): 1",
                           "Xid (PCI:0000:5d:00): 79, x",
                           "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
                           "mlx5_core 0000:5d:00.0: Port: 1 Link DOWN"};
    for (const auto* line : lines) {
        CAPTURE(line);
        CHECK_FALSE(parse(line));
    }
}

TEST_CASE("any bytes at all are survived", "[fault]") {
    std::mt19937 random(1);
    const std::string seed =
        "NVRM: Xid (PCI:0000:5d:00 GPU-I:05): 154, pid=1, name=a, b, GPU recovery action changed from 0x0 "
        "(N) to "
        "0x2 (R)";
    kernel_parser parser;
    for (int n = 0; n < 20'000; ++n) {
        auto line = seed.substr(0, random() % (seed.size() + 1));
        for (int flips = static_cast<int>(random() % 4); flips > 0 && !line.empty(); --flips)
            line[random() % line.size()] = static_cast<char>(random());
        (void)parser.line(line);
    }
    CHECK(parser.line(seed).fault->recovery == 2u);
}

}  // namespace test_kernel_fault
