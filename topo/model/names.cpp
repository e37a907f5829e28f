// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/names.hpp"

#include <algorithm>

namespace banyan::topo {
namespace {

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
