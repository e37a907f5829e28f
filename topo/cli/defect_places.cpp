// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/defect_places.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace banyan::topo::cli {
namespace {

constexpr std::size_t guid_text = 18;  ///< "0x" and 16 digits

/// The GUID at the start of the text; 0 where there is none.
guid guid_at(std::string_view text) {
    guid id = 0;
    if (text.size() < guid_text || !text.starts_with("0x")) return 0;
    const auto* end = text.data() + guid_text;
    return std::from_chars(text.data() + 2, end, id, 16).ptr == end ? id : 0;
}

}  // namespace

std::uint32_t defect_places::find(guid id) const {
    const auto at = std::lower_bound(f_.switches.begin(), f_.switches.end(), id,
                                     [](const switch_node& s, guid wanted) { return s.id < wanted; });
    return at == f_.switches.end() || at->id != id ? none
                                                   : static_cast<std::uint32_t>(at - f_.switches.begin());
}

/// "0x... port 5" with the switch's name for its GUID.
std::string defect_places::words(std::string_view where) const {
    const auto sw = find(guid_at(where));
    if (sw == none) return std::string(where);
    const auto rest = where.substr(guid_text);
    return fmt::format("{}{}", names_.of(f_, sw), rest.empty() ? " port ?" : rest);
}

std::vector<std::string> defect_places::missing_cables(const defect& d) const {
    std::vector<std::string> out;
    if (d.kind != "missing-uplink" && d.kind != "asymmetric-spine" && d.kind != "missing-rail" &&
        d.kind != "missing-switch" && d.kind != "missing-plane")
        return out;
    for (const std::string_view where : d.where) {
        const auto to = where.find(" to ");
        if (to != std::string_view::npos)
            out.push_back(words(where.substr(0, to)) + " to " + words(where.substr(to + 4)));
        else if (where.size() > guid_text)
            out.push_back(words(where));
    }
    return out;
}

std::vector<std::uint32_t> defect_places::nameless(const defect& d) const {
    std::vector<std::uint32_t> out;
    const auto look = [&](std::string_view text) {
        for (auto at = text.find("0x"); at != std::string_view::npos; at = text.find("0x", at + 2)) {
            const auto sw = find(guid_at(text.substr(at)));
            if (sw != none && names_.nameless(sw)) out.push_back(sw);
        }
    };
    for (const auto& where : d.where) look(where);
    for (const auto& object : d.objects) look(object);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace banyan::topo::cli
