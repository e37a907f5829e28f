// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/fabric.hpp>

#include "topo/model/names.hpp"

namespace banyan::topo {

std::vector<std::string> words_of(const untold_facts& u) {
    std::vector<std::string> out;
    if (u.cables) out.emplace_back("cables and ports");
    if (u.rails) out.emplace_back("rails");
    if (u.devices) out.emplace_back("RDMA devices");
    if (u.rates) out.emplace_back("rates of links");
    if (u.upper) out.emplace_back("switches above the leaves");
    if (u.guids) out.emplace_back("GUIDs");
    return out;
}

std::uint32_t find_host(const fabric& f, const std::string& name) {
    const auto at =
        std::lower_bound(f.hosts.begin(), f.hosts.end(), name,
                         [](const host& h, const std::string& n) { return before_by_number(h.name, n); });
    return at == f.hosts.end() || at->name != name ? none : static_cast<std::uint32_t>(at - f.hosts.begin());
}

}  // namespace banyan::topo
