// SPDX-License-Identifier: BSD-3-Clause
#include "fault/catalog/nvlink.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace banyan::fault::catalog {
namespace {

/// "------000001----------0111000110": the highest bit first, "-" for any.
struct bit_mask {
    std::uint32_t care = 0, value = 0;
    constexpr bool fits(std::uint32_t word) const { return care != 0 && (word & care) == value; }
};

consteval bit_mask bits(std::string_view text) {
    bit_mask out;
    if (text == "-") return out;
    if (text.size() != 32) throw "a mask has 32 bits";
    for (const char c : text) {
        if (c != '-' && c != '0' && c != '1') throw "a bit is 0, 1 or -";
        out.care = out.care << 1 | (c != '-');
        out.value = out.value << 1 | (c == '1');
    }
    return out;
}

/// One layout of INFO: the drivers' before R575, or from it on.
struct layout {
    std::string_view unit;
    bit_mask info, second;
};

struct status_set {
    std::array<std::uint32_t, 2> values{};
    int count = 0;  // 0: any
    constexpr bool has(std::uint32_t status) const {
        return count == 0 || status == values[0] || (count > 1 && status == values[1]);
    }
};

struct nvlink5_row {
    std::uint32_t xid;
    layout before_575, from_575;
    status_set status;
    link_action action, second_action;
    link_look look;
};

constexpr nvlink5_row link_table[] = {
#include "nvlink5_table.inc"
};
static_assert(std::size(link_table) == 95);

/// Drivers print one of the names with a blank.
bool same_unit(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](char x, char y) { return (x == ' ' ? '_' : x) == (y == ' ' ? '_' : y); });
}

link_ruling read_as(layout nvlink5_row::*how, std::uint32_t xid, std::string_view unit, std::uint32_t info,
                    std::uint32_t status) {
    for (const auto& row : link_table) {
        const auto& as = row.*how;
        if (row.xid != xid || !row.status.has(status) || !same_unit(as.unit, unit)) continue;
        if (as.second.fits(info)) return {row.second_action, row.look};
        if (as.info.fits(info)) return {row.action, row.look};
    }
    return {};
}

// The registers of Xid 74, bit by bit; of several the later entry weighs more.
struct bit_words {
    std::size_t word;
    std::uint32_t bits;
    link_ruling ruling;
};

constexpr std::uint32_t mask_of(std::initializer_list<int> numbers) {
    std::uint32_t out = 0;
    for (const int n : numbers) out |= 1u << n;
    return out;
}

using enum link_action;
constexpr auto bit_table = std::to_array<bit_words>({
    {0, mask_of({0, 23, 30}), {ignore, link_look::none}},
    {4, mask_of({20, 23, 26, 29}), {ignore, link_look::none}},  // corrected errors over a threshold
    {0, mask_of({1, 20}), {report, link_look::follows}},
    {3, mask_of({16, 17}), {report, link_look::follows}},
    {3, mask_of({18}), {report, link_look::follows_fabric}},
    {0, mask_of({27, 29}), {report, link_look::daily}},
    {2, mask_of({16, 17, 18, 19}), {report, link_look::daily}},
    {0, mask_of({21, 22}), {report, link_look::signal}},
    {0, mask_of({4, 5}), {report, link_look::ecc}},
    {2, mask_of({0, 1, 2, 6}), {report, link_look::ecc}},
    {4, mask_of({18, 19, 21, 22, 24, 25, 27, 28}), {report, link_look::ecc}},
    {0, mask_of({8, 9, 12, 16, 17, 24, 28}), {report, link_look::seat}},
    {2, mask_of({13}), {report, link_look::support}},
});
constexpr std::size_t registers_of_74 = 7;

}  // namespace

link_ruling rule_nvlink5(std::uint32_t xid, std::string_view unit, std::uint32_t info, std::uint32_t status,
                         std::uint32_t branch) {
    constexpr std::uint32_t other_layout = 575;
    const auto read = [&](layout nvlink5_row::*how) { return read_as(how, xid, unit, info, status); };
    if (branch != 0) return read(branch < other_layout ? &nvlink5_row::before_575 : &nvlink5_row::from_575);
    // No INFO of the one layout fits a row of the other, but where both mean the same: a test tries them all.
    const auto before = read(&nvlink5_row::before_575), from = read(&nvlink5_row::from_575);
    if (before.action == unknown) return from;
    if (from.action == unknown) return before;
    return before == from ? before : link_ruling{};
}

link_ruling rule_nvlink4(std::span<const std::uint32_t> registers) {
    if (registers.size() != registers_of_74) return {};
    std::array<std::uint32_t, registers_of_74> left{};
    std::ranges::copy(registers, left.begin());
    link_ruling out;
    for (const auto& entry : bit_table) {
        if ((left.at(entry.word) & entry.bits) == 0) continue;
        left.at(entry.word) &= ~entry.bits;
        out = entry.ruling;
    }
    // A bit that is not in the table, or a register that Hopper does not fill: another card's, maybe.
    return std::ranges::all_of(left, [](auto word) { return word == 0; }) ? out : link_ruling{};
}

std::string_view words_for(link_look look) {
    switch (look) {
        using enum link_look;
        case none:
            break;
        case support:
            return "a matter for NVIDIA's support";
        case daily:
            return "worth a report when it comes again";
        case follows:
            return "follows from another fault, where there is one";
        case follows_fabric:
            return "follows from another fault, where there is one; the fabric is to be reset";
        case link_flow:
            return "follows from a link that went down, where one did";
        case ecc:
            return "ECC or parity of the link: hardware, where it comes more than twice";
        case seat:
            return "the link's seat, or hardware";
        case signal:
            return "the link's signal is weak";
        case cable:
            return "the link's signal, cable, module or seat";
        case software:
            return "software or a person took the link down";
        case software_signal:
            return "software or a person took the link down, or its signal is weak";
        case host:
            return "something on the host did it: see its other logs";
        case peer:
            return "the other end of the link went down first";
    }
    return {};
}

}  // namespace banyan::fault::catalog
