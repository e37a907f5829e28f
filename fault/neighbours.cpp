// SPDX-License-Identifier: BSD-3-Clause
#include "fault/neighbours.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"

namespace banyan::fault {

using nlohmann::json;

std::string neighbours::text() const {
    std::string out;
    if (!pci_switch.empty()) {
        out = fmt::format("PCIe switch {} with ", pci_switch);
        for (std::size_t n = 0; n < beside.size(); ++n) out += (n > 0 ? ", " : "") + beside[n].text();
    }
    if (numa >= 0) out += fmt::format("{}NUMA node {}", out.empty() ? "" : "; ", numa);
    return out;
}

json to_json(const neighbours& n) {
    json beside = json::array();
    for (const auto& c : n.beside) beside.push_back({{"bdf", c.bdf}, {"name", c.name}});
    return {{"switch", n.pci_switch}, {"numa", n.numa}, {"beside", std::move(beside)}};
}

result<neighbours> neighbours_from(const json& told) {
    constexpr std::size_t most_text = 64;
    constexpr int most_nodes = 1023;
    const json_fields in(told);
    neighbours out;
    BANYAN_TRY(out.pci_switch, in.text("switch", most_text));
    out.numa = static_cast<int>(std::clamp<std::int64_t>(in.integer("numa").value_or(-1), -1, most_nodes));
    BANYAN_TRY(const auto beside, in.list("beside", most_neighbours));
    for (const auto& one : beside) {
        neighbours::card c;
        BANYAN_TRY(c.bdf, one.text("bdf", most_text));
        BANYAN_TRY(c.name, one.text("name", most_text));
        out.beside.push_back(std::move(c));
    }
    return out;
}

}  // namespace banyan::fault
