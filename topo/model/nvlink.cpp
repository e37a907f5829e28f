// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <banyan/topo/capacity.hpp>

namespace banyan::topo {

void number_nvlink_domains(fabric& f) {
    std::map<std::pair<std::uint32_t, std::string_view>, std::vector<std::uint32_t>> members;
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h)
        if (const auto& host = f.hosts[h]; !host.nvlink_domain.empty() && host.leaf_group != none)
            members[{host.leaf_group, host.nvlink_domain}].push_back(h);
    std::uint32_t number = 0;
    for (auto& h : f.hosts) h.nvlink = none;
    for (const auto& [domain, hosts] : members) {
        if (hosts.size() < 2) continue;
        for (const auto h : hosts) f.hosts[h].nvlink = number;
        ++number;
    }
}

}  // namespace banyan::topo
