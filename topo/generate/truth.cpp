// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topo/generate/generate.hpp"

namespace banyan::topo::generate {

std::string_view name_of(duty d) {
    constexpr std::array<std::string_view, 4> names{"service", "storage-server", "storage-hca", "dpu"};
    return names[static_cast<std::size_t>(d)];
}

std::string to_json(const truth& t, const options& o) {
    using json = nlohmann::ordered_json;
    json out{{"seed", o.seed}, {"asked", json::object()}, {"planted", json::object()}};
    std::array<std::uint32_t, defect_kinds> planted{};
    for (const auto& d : t.defects) ++planted[static_cast<std::size_t>(d.kind)];
    for (std::size_t k = 0; k < defect_kinds; ++k) {
        const std::string name(name_of(static_cast<defect_kind>(k)));
        out["asked"][name] = t.asked[k];
        out["planted"][name] = planted[k];
    }
    auto& defects = out["defects"] = json::array();
    for (const auto& d : t.defects) defects.push_back({{"kind", name_of(d.kind)}, {"objects", d.objects}});
    auto& groups = out["groups"] = json::array();
    for (const auto& g : t.groups) groups.push_back({{"leaves", g.leaves}});
    auto& hosts = out["hosts"] = json::array();
    for (const auto& h : t.hosts) hosts.push_back({{"name", h.name}, {"group", h.group}, {"named", h.named}});
    auto& hcas = out["hcas"] = json::array();
    for (const auto& h : t.hcas)
        hcas.push_back({{"guid", fmt::format("0x{:016x}", h.id)},
                        {"name", h.name},
                        {"host", t.hosts[h.host].name},
                        {"leaf_group", h.leaf_group},
                        {"rail", h.rail}});
    auto& others = out["others"] = json::array();
    for (const auto& h : t.others)
        others.push_back(
            {{"guid", fmt::format("0x{:016x}", h.id)}, {"name", h.name}, {"for", name_of(h.what)}});
    return out.dump(1) + '\n';
}

}  // namespace banyan::topo::generate
