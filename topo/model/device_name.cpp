// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/device_name.hpp"

#include <algorithm>
#include <charconv>

#include "topo/model/hca_names.hpp"

namespace banyan::topo {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_of_word(char c) { return is_digit(c) || is_letter(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t out = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (bad != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return out;
}

/// The number behind that letter, at most `most`; 0 where another letter stands. False where it is no such.
bool take_part(std::string_view& text, char letter, std::uint64_t most, std::uint64_t& out) {
    if (!text.starts_with(letter)) return true;
    text.remove_prefix(1);
    const auto number = take_number(text);
    out = number.value_or(0);
    return number && *number <= most;
}

/// What systemd and rdma-core write of where a device sits, behind a word for its kind: "p3s0", "P2p1s0f1",
/// "s4" (a slot that has a number), "o1" (on the board).
std::optional<std::uint64_t> read_slot(std::string_view text) {
    constexpr std::uint64_t most_domains = 0xffffff, most_buses = 0xffff, most = 0xff;
    std::uint64_t domain = 0, bus = 0, slot = 0, function = 0;
    const bool on_board = text.starts_with('o');
    if (on_board ? !take_part(text, 'o', most, slot)
                 : !take_part(text, 'P', most_domains, domain) || !take_part(text, 'p', most_buses, bus) ||
                       !text.starts_with('s') || !take_part(text, 's', most, slot))
        return std::nullopt;
    // What may follow (a port's name, a virtual function) orders nothing.
    if (!take_part(text, 'f', most, function)) return std::nullopt;
    return domain << 32 | bus << 16 | slot << 8 | function;
}

/// A device by its own GUID: "x0c42a103001a2b3c".
bool is_own_guid(std::string_view text) {
    return text.size() >= 13 && text.front() == 'x' &&
           text.find_first_not_of("0123456789abcdefABCDEF", 1) == text.npos;
}

/// The word for its kind ("ib" of "ibp3s0") ends where a place begins.
std::optional<std::uint64_t> slot_behind_kind(std::string_view word) {
    for (std::size_t at = 2; at < word.size() && is_letter(word[at - 1]); ++at)
        if (const auto slot = read_slot(word.substr(at))) return slot;
    return std::nullopt;
}

/// What drivers call their devices, and rdma-core those of a kind.
constexpr std::string_view usual_heads[] = {"mlx5_", "mlx4_", "HCA-", "hfi1_", "bnxt_re", "qib",  "rdma",
                                            "roce",  "ib",    "opa",  "iw",    "irdma",   "efa_", "ionic_"};

}  // namespace

std::optional<device_name> read_device_name(std::string_view word) {
    if (const auto slot = slot_behind_kind(word)) return device_name{hca_name::by_slot, *slot};
    auto digits = word.size();
    while (digits > 0 && is_digit(word[digits - 1])) --digits;
    auto rest = word.substr(digits);
    const auto number = take_number(rest);
    if (digits == 0 || !number || (digits >= 3 && is_own_guid(word.substr(2)))) return std::nullopt;
    const auto naming = word.substr(0, digits);
    // That naming counts from one: HCA-1 is mlx5_0.
    if (naming == "HCA-" && *number > 0) return device_name{"mlx5_", *number - 1};
    return device_name{naming, *number};
}

bool is_usual_device(std::string_view word) {
    return std::any_of(std::begin(usual_heads), std::end(usual_heads), [&](auto head) {
        if (!word.starts_with(head)) return false;
        const auto rest = word.substr(head.size());
        if (rest.empty()) return false;
        // Scripts of sites put a word of their own between: "mlx5_ib0", "mlx5_bond_0". No other sign belongs
        // to it: "mlx5_0@r1-n2" has a device and a host.
        if (head == "mlx5_") return is_digit(rest.back()) && std::ranges::all_of(rest, is_of_word);
        return is_digit(rest.front()) || read_slot(rest) || is_own_guid(rest);
    });
}

}  // namespace banyan::topo
