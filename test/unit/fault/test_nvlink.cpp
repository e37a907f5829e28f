// SPDX-License-Identifier: BSD-3-Clause
//
// What the registers in lines on NVLinks ask for: Xids 144 to 150 by NVIDIA's table, read before and after
// R575, and Xid 74.
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "fault/sources/gpu_map.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_nvlink {

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

struct golden_line {
    std::string row, action, text;
    std::uint32_t branch = 0;
};

// The fixture was made from NVIDIA's table itself.
std::vector<golden_line> golden_lines() {
    std::ifstream file(banyan::testing::fixture("fault/nvlink5.table"));
    std::vector<golden_line> out;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with('#')) continue;
        const auto parts = banyan::split(line, '\t');
        REQUIRE(parts.size() == 4);
        out.push_back({std::string(parts[0]), std::string(parts[2]), std::string(parts[3]),
                       static_cast<std::uint32_t>(*banyan::parse_number(parts[1], 9'999))});
    }
    return out;
}

kernel_fault read(const std::string& text, std::uint32_t branch) {
    kernel_parser parser;
    parser.set_branch(branch);
    return parser.line(text).fault.value_or(kernel_fault{});
}

precedence wanted(const std::string& action) {
    if (action == "RESET_GPU") return precedence::reset;
    return action == "IGNORE" ? precedence::note : precedence::app;
}

std::string netir(const std::string& registers) {
    return "NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (" + registers + ")";
}

}  // namespace

TEST_CASE("every row of NVIDIA's table is read as it says, by both branches", "[fault]") {
    const auto lines = golden_lines();
    std::set<std::string> rows;
    std::size_t before = 0;
    for (const auto& line : lines) {
        CAPTURE(line.row, line.branch, line.text);
        rows.insert(line.row);
        before += line.branch < 575;
        const auto fault = read(line.text, line.branch);
        CHECK(precedence_of(fault) == wanted(line.action));
        // Nobody said which driver it is: no line fits both readings, but where both ask for the same.
        CHECK(precedence_of(read(line.text, 0)) == wanted(line.action));
        // By the other branch it makes no sense; 150 may look alike in both.
        const auto otherwise = read(line.text, line.branch < 575 ? 575 : 574);
        if (fault.code != 150) CHECK(precedence_of(otherwise) == precedence::alert);
        // An agent tells the controller all that it needs.
        auto e = event_of(line.text);
        e.fault = fault;
        const auto told = event_from(nlohmann::json::parse(to_json(e).dump()));
        REQUIRE(told);
        CHECK(precedence_of(told->fault) == wanted(line.action));
        CHECK(told->fault.registers->branch == line.branch);
    }
    CHECK(rows.size() == 95);
    CHECK(before * 2 == lines.size());
}

TEST_CASE("no INFO fits the rows of both layouts, but those that mean the same", "[fault]") {
    std::set<std::string> units;
    for (const auto& line : golden_lines()) units.insert(read(line.text, 0).registers->unit);
    for (std::uint32_t xid = 144; xid <= 149; ++xid)
        for (const auto& unit : units)
            for (std::uint32_t info = 0; info < 1u << 11; ++info)
                for (const std::uint32_t status : {0u, 1u, 4u, 0x80000000u}) {
                    const auto as = [&](std::uint32_t branch) {
                        return catalog::rule_nvlink5(xid, unit, info, status, branch).action;
                    };
                    if (as(574) != catalog::link_action::unknown && as(575) != catalog::link_action::unknown)
                        FAIL(fmt::format("Xid {} {} 0x{:08x} 0x{:08x}", xid, unit, info, status));
                }
}

TEST_CASE("what the severity says does not decide", "[fault]") {
    // "Link Fatal", and nothing is to be done; and the other way round.
    CHECK(precedence_of(read(netir("0x026005c6 0x00000000"), 570)) == precedence::note);
    const std::string nonfatal = "NVRM: Xid (PCI:0000:05:00): 145, RLW_RSPCOL Nonfatal XC0 i0 Link 08 (";
    CHECK(precedence_of(read(nonfatal + "0x000000a2 0x00000002)", 570)) == precedence::reset);
    CHECK(precedence_of(read(nonfatal + "0x000000a2 0x00000001)", 570)) == precedence::note);
}

TEST_CASE("a second mask comes before the first", "[fault]") {
    const std::string rxpipe = "NVRM: Xid (PCI:0000:05:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 08 (";
    CHECK(precedence_of(read(rxpipe + "0x000000c2 0x00000001)", 570)) == precedence::note);
    CHECK(precedence_of(read(rxpipe + "0x000004c2 0x00000001)", 570)) == precedence::reset);
    CHECK(precedence_of(read(rxpipe + "0x00000006 0x00000001)", 580)) == precedence::note);
    CHECK(precedence_of(read(rxpipe + "0x00000086 0x00000001)", 580)) == precedence::reset);
}

TEST_CASE("what fits no row is an alert", "[fault]") {
    CHECK(precedence_of(read(netir("0x03f005c6 0x00000000"), 570)) == precedence::alert);  // another reason
    const std::string rspcol = "NVRM: Xid (PCI:0000:05:00): 145, RLW_RSPCOL Fatal XC0 i0 Link 08 (";
    CHECK(precedence_of(read(rspcol + "0x000000a2 0x00000003)", 570)) == precedence::alert);  // two at once
    CHECK(precedence_of(read("NVRM: Xid (PCI:0000:05:00): 145, RLW_OTHER Fatal XC0 i0 Link 08 (0x000000a2 "
                             "0x00000002)",
                             570)) == precedence::alert);
    CHECK(precedence_of(read("NVRM: Xid (PCI:0000:05:00): 146, RLW_RSPCOL Fatal XC0 i0 Link 08 (0x000000a2 "
                             "0x00000002)",
                             570)) == precedence::alert);
}

TEST_CASE("a line that is cut or damaged asks for no action", "[fault]") {
    std::mt19937 random(149);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const auto lines = golden_lines();
    int tried = 0;
    while (tried < 20'000) {
        const auto& line = lines[below(lines.size())];
        auto text = line.text;
        const auto head = text.find("): ") + 8, at = head + below(text.size() - head);
        switch (below(5)) {
            case 0:
                text.resize(at);
                break;
            case 1:
                text.erase(at, 1 + below(12));
                break;
            case 2:
                text.insert(at, 1, static_cast<char>(32 + below(95)));
                break;
            case 3:
                text.insert(at, text.substr(at, 1 + below(20)));
                break;
            default:
                text[at] = static_cast<char>(1 + below(255));
        }
        const auto fault = read(text, line.branch);
        // What is left whole says what it says: a letter of the process's name, a register that is not asked
        // for.
        const auto whole = read(line.text, line.branch);
        const auto same = [&] {
            if (!fault.registers || fault.registers->unit != whole.registers->unit) return false;
            const auto &now = fault.registers->words, &was = whole.registers->words;
            const bool any_status =
                *banyan::parse_number(line.row, 95) >= 62 && *banyan::parse_number(line.row, 95) <= 83;
            return now[0] == was[0] && (now[1] == was[1] || any_status);
        };
        // It may be a whole line still, which says something else: another digit, or one register more or
        // less.
        constexpr std::size_t one_register = 11;
        const auto longer = std::max(text.size(), line.text.size()),
                   shorter = std::min(text.size(), line.text.size());
        ++tried;
        if (same() || longer == shorter || longer - shorter == one_register) continue;
        CAPTURE(line.text, text);
        CHECK(precedence_of(fault) == precedence::alert);
    }
}

TEST_CASE("Xid 74: its registers bit by bit", "[fault]") {
    const auto weight = [](const std::string& registers) {
        return precedence_of(
            read("NVRM: Xid (PCI:0000:05:00): 74, pid=1, name=p, NVLink: fatal error detected "
                 "on link 14(" +
                     registers + ")",
                 550));
    };
    CHECK(weight("0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0") == precedence::note);
    CHECK(weight("0x40800001, 0x0, 0x0, 0x0, 0x24900000, 0x0, 0x0") == precedence::note);
    for (const auto* one : {"0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", "0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
                            "0x1, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0", "0x0, 0x0, 0x0, 0x40000, 0x0, 0x0, 0x0",
                            "0x0, 0x0, 0x2000, 0x0, 0x0, 0x0, 0x0", "0x4, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
                            "0x1, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0", "0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
                            "0x1, 0x0, 0x0, 0x0, 0x0, 0x0", "0x1, 0x0"})
        CHECK(weight(one) == precedence::alert);
    const auto look = [](std::initializer_list<std::uint32_t> words) {
        return catalog::rule_nvlink4(std::vector(words)).look;
    };
    using enum catalog::link_look;
    CHECK(look({1u << 20, 0, 0, 0, 0, 0, 0}) == follows);
    CHECK(look({1u << 20, 0, 0, 1u << 18, 0, 0, 0}) == follows_fabric);
    CHECK(look({1u << 20 | 1u << 4, 0, 0, 0, 0, 0, 0}) == ecc);
    CHECK(look({1u << 28 | 1u << 4, 0, 0, 0, 0, 0, 0}) == seat);
    CHECK(look({1u << 22, 0, 0, 0, 0, 0, 0}) == signal);
    CHECK(look({0, 0, 1u << 17, 0, 0, 0, 0}) == daily);
}

TEST_CASE("the driver's branch comes from its own words and from the machine", "[fault]") {
    kernel_parser parser;
    CHECK_FALSE(
        parser.line("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.158.01  Mon Jun  2 2025").fault);
    CHECK(parser.branch() == 570);
    parser.line("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build  (dvs@b)");
    CHECK(parser.branch() == 575);
    CHECK(parser.line(netir("0x004505c6 0x00000000")).fault->registers->branch == 575);
    parser.line("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  something else");
    CHECK(parser.branch() == 0);

    const auto root = banyan::testing::scratch_path("branch");
    CHECK(driver_branch(root) == 0);
    std::filesystem::create_directories(root / "proc/driver/nvidia");
    std::ofstream(root / "proc/driver/nvidia/version")
        << "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024\n"
           "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
    CHECK(driver_branch(root) == 535);
    std::filesystem::remove_all(root);
}

}  // namespace test_nvlink
