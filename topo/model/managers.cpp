// SPDX-License-Identifier: BSD-3-Clause
//
// Subnet managers: which node each is on, and whether one would take over from the master.
#include <algorithm>

#include <banyan/topo/switch_names.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/health.hpp"

namespace banyan::topo::build {
namespace {

using role = subnet_manager::role;

/// The node with that GUID, or that LID; its description.
std::string node_of(const fabric& f, const switch_names& names, const subnet_manager& m) {
    const auto is = [&](const auto& n) { return n.id == m.id || (m.lid != 0 && n.lid == m.lid); };
    if (const auto at = std::find_if(f.hcas.begin(), f.hcas.end(), is); at != f.hcas.end()) return at->name;
    const auto at = std::find_if(f.switches.begin(), f.switches.end(), is);
    return at == f.switches.end() ? "" : names.of(f, static_cast<std::uint32_t>(at - f.switches.begin()));
}

std::string text_of(const subnet_manager& m) { return m.name.empty() ? hex(m.id) : m.name; }

}  // namespace

void take_managers(fabric& f, const health& h) {
    constexpr std::size_t most = 64;  // each is looked for among all nodes
    f.managers.clear();
    const switch_names names(f);
    for (const auto& m : h.managers) {
        const auto known = std::find_if(f.managers.begin(), f.managers.end(), [&](const auto& k) {
            return k.id == m.id || (m.lid != 0 && k.lid == m.lid);
        });
        if (known != f.managers.end() || f.managers.size() == most) continue;
        f.managers.push_back(m);
        f.managers.back().name = node_of(f, names, m);
    }
    const auto report = [&](const char* kind, std::vector<std::string> objects, std::string evidence,
                            std::vector<std::string> where) {
        f.defects.push_back({kind, std::move(objects), std::move(evidence), 1.0, std::move(where)});
    };
    std::vector<const subnet_manager*> masters;
    std::size_t standbys = 0;
    for (const auto& m : f.managers) {
        if (m.state == role::master) masters.push_back(&m);
        standbys += m.state == role::standby;
    }
    if (masters.size() > 1) {
        std::vector<std::string> objects, where;
        for (const auto* m : masters) objects.push_back(text_of(*m)), where.push_back(hex(m->id));
        report("two-masters", std::move(objects),
               fmt::format("{} subnet managers are master", masters.size()), std::move(where));
    }
    // sminfo asks the master alone: it says nothing of others.
    if (!h.managers_listed) return;
    if (masters.empty())
        report("no-master", {"subnet manager"}, fmt::format("none of {} is master", f.managers.size()), {});
    else if (masters.size() == 1 && standbys == 0)
        report("no-standby", {text_of(*masters.front())},
               "it is the only subnet manager: none would take over", {hex(masters.front()->id)});
}

}  // namespace banyan::topo::build
