// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/names.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

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

/// What follows "ib" or "roce" in a name that systemd or rdma-core made of where the device sits: "p3s0",
/// "P2p1s0f1", "s4" (a slot that has a number), "o1" (on the board), "x0c42a103001a2b3c" (its GUID).
bool is_predictable(std::string_view text, hca_name& out) {
    constexpr std::uint64_t most_domains = 0xffffff, most_buses = 0xffff, most = 0xff;
    if (text.starts_with('x')) {
        out.naming = device_naming::own_guid;
        return text.size() >= 13 && text.find_first_not_of("0123456789abcdefABCDEF", 1) == text.npos;
    }
    out.naming = device_naming::slot;
    std::uint64_t domain = 0, bus = 0, slot = 0, function = 0;
    const bool on_board = text.starts_with('o');
    if (on_board ? !take_part(text, 'o', most, slot)
                 : !take_part(text, 'P', most_domains, domain) || !take_part(text, 'p', most_buses, bus) ||
                       !text.starts_with('s') || !take_part(text, 's', most, slot))
        return false;
    // What may follow (a port's name, a virtual function) orders nothing.
    if (!take_part(text, 'f', most, function)) return false;
    out.device = domain << 32 | bus << 16 | slot << 8 | function;
    return true;
}

/// "mlx5_7", "HCA-1", "ibp3s0", "hfi1_0".
bool is_device(std::string_view word, hca_name& out) {
    struct form {
        std::string_view head;
        device_naming naming;
    };
    static constexpr form forms[] = {{"mlx5_", device_naming::kernel},    {"HCA-", device_naming::kernel},
                                     {"mlx4_", device_naming::mlx4},      {"hfi1_", device_naming::hfi1},
                                     {"bnxt_re", device_naming::bnxt_re}, {"qib", device_naming::qib},
                                     {"roce", device_naming::roce},       {"ib", device_naming::net}};
    for (const auto& f : forms) {
        if (!word.starts_with(f.head)) continue;
        auto rest = word.substr(f.head.size());
        const bool may_be_predictable = f.naming == device_naming::net || f.naming == device_naming::roce;
        if (may_be_predictable && is_predictable(rest, out)) return true;
        out.naming = f.naming;
        const auto number = take_number(rest);
        if (number) out.device = *number;
        // The other naming counts from one: HCA-1 is mlx5_0.
        if (f.head == "HCA-" && number && *number > 0) --out.device;
        return number.has_value();
    }
    return false;
}

/// Whether one of the words is a whole one of the name, which digits and signs divide.
template <std::size_t count>
bool has_word(std::string_view name, const std::string_view (&words)[count]) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (std::size_t at = 0; at < name.size();) {
        auto end = at;
        while (end < name.size() && letter(name[end])) ++end;
        if (std::find(std::begin(words), std::end(words), name.substr(at, end - at)) != std::end(words))
            return true;
        at = end + 1;
    }
    return false;
}

}  // namespace

hca_name read_hca_name(std::string_view description) {
    hca_name out;
    description = trim(description);
    if (description.find("Aggregation Node") != std::string_view::npos) {
        out.kind = hca_name::trust::aggregation;
        return out;
    }
    const auto blank = description.find(' ');
    const auto second =
        blank == std::string_view::npos ? std::string_view{} : trim(description.substr(blank + 1));
    const auto word = second.substr(0, second.find(' '));
    const bool device = is_device(word, out);
    if (!device && (blank != std::string_view::npos || description.empty())) {
        out.kind = hca_name::trust::factory;
        return out;
    }
    out.host = description.substr(0, blank);
    out.device_name = word;
    // The name of an installer's image: several hosts may have it, so it names none of them.
    static constexpr std::string_view images[] = {"localhost", "localhost.localdomain", "ubuntu", "debian",
                                                  "(none)"};
    if (std::find(std::begin(images), std::end(images), out.host) != std::end(images))
        out.kind = hca_name::trust::generic;
    return out;
}

bool before_by_number(std::string_view a, std::string_view b) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (!digit(a[i]) || !digit(b[j])) {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i, ++j;
            continue;
        }
        const auto number = [&](std::string_view text, std::size_t& at) {
            while (at + 1 < text.size() && text[at] == '0' && digit(text[at + 1])) ++at;
            const auto start = at;
            while (at < text.size() && digit(text[at])) ++at;
            return text.substr(start, at - start);
        };
        const auto x = number(a, i), y = number(b, j);
        if (x.size() != y.size()) return x.size() < y.size();
        if (x != y) return x < y;
    }
    if (i < a.size() || j < b.size()) return j < b.size();
    return a < b;  // "n01" and "n1"
}

bool is_factory_switch(std::string_view description) {
    return description.find(';') == std::string_view::npos &&
           description.find("Mellanox Technologies") != std::string_view::npos;
}

bool is_storage_name(std::string_view host) {
    // A whole word of the name: "mds" in "lustre-mds2", not in "amds1".
    static constexpr std::string_view words[] = {"oss",  "ost",  "mds",  "mdt",    "mgs",     "nsd",
                                                 "ess",  "nas",  "nfs",  "stor",   "storage", "lustre",
                                                 "gpfs", "weka", "vast", "beegfs", "ddn",     "ceph"};
    return has_word(host, words);
}

bool is_manager_name(std::string_view host) {
    static constexpr std::string_view words[] = {"ufm", "opensm", "sm", "gw", "gateway", "skyway", "lnet"};
    return has_word(host, words);
}

namespace {

/// 'L' or 'S' of a director's card, line or spine; 0 where the name is of none. A digit may stand as '#', as
/// in a name's pattern.
char card_of(std::string_view description) {
    for (std::size_t at = description.find('/'); at != std::string_view::npos;
         at = description.find('/', at + 1)) {
        const auto card = description.substr(at + 1, 2);
        const bool number = card.size() == 2 && ((card[1] >= '0' && card[1] <= '9') || card[1] == '#');
        if (number && (card[0] == 'L' || card[0] == 'S')) return card[0];
    }
    return 0;
}

}  // namespace

std::string short_switch_name(std::string_view description) {
    const auto start = description.find(';');
    const auto name = description.substr(start == std::string_view::npos ? 0 : start + 1);
    const auto model = name.find(':');
    std::string out(name.substr(0, model));
    // The switches of a director differ in the card alone.
    if (model != std::string_view::npos && card_of(name) != 0)
        if (const auto card = name.find('/', model); card != std::string_view::npos) out += name.substr(card);
    return out;
}

bool is_line_card(std::string_view description) { return card_of(description) == 'L'; }

switch_role role_in_name(std::string_view description) {
    // A director's cards: lines below, spines above. They stand after the model, if that is given.
    if (const auto card = card_of(description); card != 0)
        return card == 'L' ? switch_role::leaf : switch_role::upper;
    const auto start = description.find(';');
    if (start != std::string_view::npos) description.remove_prefix(start + 1);
    if (const auto colon = description.find(':'); colon != std::string_view::npos)
        description = description.substr(0, colon);
    static constexpr std::string_view leaves[] = {"leaf", "tor", "edge"};
    static constexpr std::string_view uppers[] = {"spine", "core", "superspine"};
    if (has_word(description, uppers)) return switch_role::upper;
    return has_word(description, leaves) ? switch_role::leaf : switch_role::untold;
}

}  // namespace banyan::topo
