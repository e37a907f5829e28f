// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::build {
namespace {

using hcas_by_host = std::map<std::string, std::vector<std::uint32_t>>;

/// HCAs with a factory name that share a system image with named ones belong to that host.
void attribute_by_system(state& s, hcas_by_host& hosts, std::vector<std::uint32_t>& nameless) {
    std::unordered_map<guid, std::string> host_of_system;
    for (const auto& [name, hcas] : hosts)
        for (const auto h : hcas)
            if (s.system_of_hca[h]) host_of_system.emplace(s.system_of_hca[h], name);
    std::erase_if(nameless, [&](std::uint32_t h) {
        const auto at = s.system_of_hca[h] ? host_of_system.find(s.system_of_hca[h]) : host_of_system.end();
        if (at == host_of_system.end()) return false;
        hosts[at->second].push_back(h);
        s.out.defects.push_back({"factory-name",
                                 {fmt::format("0x{:016x}", s.out.hcas[h].id)},
                                 fmt::format("taken for an HCA of {} (same system image GUID)", at->second),
                                 0.9});
        return true;
    });
}

/// A host with one HCA where its peers have several serves the fabric, not jobs: a subnet manager or UFM
/// host.
bool is_management(const state& s, const std::string& name, std::size_t hcas, std::size_t usual) {
    const auto& named = s.options.exclude_hosts;
    if (std::find(named.begin(), named.end(), name) != named.end()) return true;
    return hcas == 1 && usual >= 4;
}

std::size_t usual_count(const hcas_by_host& hosts) {
    std::vector<std::size_t> counts;
    for (const auto& [name, hcas] : hosts) counts.push_back(hcas.size());
    if (counts.empty()) return 0;
    std::nth_element(counts.begin(), counts.begin() + counts.size() / 2, counts.end());
    return counts[counts.size() / 2];
}

}  // namespace

void name_hosts(state& s) {
    hcas_by_host hosts;
    std::vector<std::uint32_t> nameless;
    for (std::uint32_t h = 0; h < s.out.hcas.size(); ++h) {
        const auto name = read_hca_name(s.out.hcas[h].name);
        if (name.kind == hca_name::trust::aggregation)
            s.out.excluded.push_back({s.out.hcas[h].id, s.out.hcas[h].name, "sharp"});
        else if (name.kind == hca_name::trust::factory)
            nameless.push_back(h);
        else
            hosts[std::string(name.host)].push_back(h);
    }
    attribute_by_system(s, hosts, nameless);
    for (const auto h : nameless) {
        s.out.excluded.push_back({s.out.hcas[h].id, s.out.hcas[h].name, "unattributed"});
        s.out.defects.push_back(
            {"factory-name",
             {fmt::format("0x{:016x}", s.out.hcas[h].id)},
             fmt::format("\"{}\" names no host; set the node description (rdma-ndd)", s.out.hcas[h].name),
             1.0});
    }
    const auto usual = usual_count(hosts);
    for (auto& [name, hcas] : hosts) {
        if (is_management(s, name, hcas.size(), usual)) {
            for (const auto h : hcas) s.out.excluded.push_back({s.out.hcas[h].id, s.out.hcas[h].name, "ufm"});
            continue;
        }
        const auto index = static_cast<std::uint32_t>(s.out.hosts.size());
        for (const auto h : hcas) s.out.hcas[h].host = index;
        std::stable_sort(hcas.begin(), hcas.end(),
                         [&](auto a, auto b) { return s.device_of_hca[a] < s.device_of_hca[b]; });
        host out;
        out.name = name;
        out.hcas = std::move(hcas);
        s.out.hosts.push_back(std::move(out));
    }
}

}  // namespace banyan::topo::build
