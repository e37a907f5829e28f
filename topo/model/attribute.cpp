// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/hosts.hpp"

namespace banyan::topo::build {
namespace {

constexpr double system_confidence = 0.95;

bool fits(const state& s, const grouping& g, std::uint32_t hca, std::uint32_t host) {
    const auto& h = s.out.hcas[hca];
    return h.leaf != none && g.group_of_leaf[h.leaf] == g.group_of_host[host] &&
           h.leaf_port == g.port_of_host[host];
}

bool on_leaf(const state& s, const std::vector<std::uint32_t>& hcas, std::uint32_t leaf) {
    return std::any_of(hcas.begin(), hcas.end(), [&](auto i) { return s.out.hcas[i].leaf == leaf; });
}

}  // namespace

void give(state& s, host_list& hosts, std::uint32_t hca, std::uint32_t host, const std::string& because,
          double confidence) {
    hosts.hcas[host].push_back(hca);
    s.out.hcas[hca].confidence = static_cast<float>(confidence);
    // One whose name is another host's was reported as such already.
    if (s.host_name_of_hca[hca].empty())
        s.report("factory-name", {hex(s.out.hcas[hca].id)},
                 fmt::format("\"{}\" names no host; taken for an HCA of {} ({})", s.out.hcas[hca].name,
                             hosts.names[host], because),
                 confidence);
}

void attribute_by_system(state& s, host_list& hosts) {
    boost::unordered_flat_map<guid, std::uint32_t> host_of_system;
    for (std::uint32_t h = 0; h < hosts.hcas.size(); ++h)
        for (const auto i : hosts.hcas[h])
            if (const auto system = s.system_of_hca[i]; system != 0) {
                const auto [at, fresh] = host_of_system.try_emplace(system, h);
                if (!fresh && at->second != h) at->second = none;  // two hosts have it: it shows nothing
            }
    std::erase_if(hosts.unattributed, [&](std::uint32_t i) {
        const auto at = s.system_of_hca[i] ? host_of_system.find(s.system_of_hca[i]) : host_of_system.end();
        if (at == host_of_system.end() || at->second == none) return false;
        give(s, hosts, i, at->second, "same system image GUID", system_confidence);
        return true;
    });
}

void settle_doubled_names(state& s, host_list& hosts, const grouping& g) {
    hcas_of_hosts::value_type kept;
    for (std::uint32_t h = 0; h < hosts.hcas.size(); ++h) {
        auto& hcas = hosts.hcas[h];
        std::stable_sort(hcas.begin(), hcas.end(),
                         [&](auto a, auto b) { return s.device_of_hca[a] < s.device_of_hca[b]; });
        kept.clear();
        for (const auto b : hcas) {
            const auto a = kept.empty() ? none : kept.back();
            if (a == none || s.device_of_hca[a] == none || s.device_of_hca[a] != s.device_of_hca[b]) {
                kept.push_back(b);
                continue;
            }
            const bool a_fits = fits(s, g, a, h), b_fits = fits(s, g, b, h);
            const bool told_apart = a_fits != b_fits;
            if (!s.counts_only("duplicate-name"))
                s.report("duplicate-name", {hex(s.out.hcas[a].id), hex(s.out.hcas[b].id)},
                         told_apart ? fmt::format("both are called \"{}\"; the first sits {} {} does",
                                                  s.out.hcas[a].name, a_fits ? "where" : "elsewhere than",
                                                  hosts.names[h])
                                    : fmt::format("both are called \"{}\"; both are taken for HCAs of {}",
                                                  s.out.hcas[a].name, hosts.names[h]),
                         0.95);
            if (!told_apart) {
                s.doubtful_host[a] = s.doubtful_host[b] = true;
                kept.push_back(b);
                continue;
            }
            hosts.unattributed.push_back(a_fits ? b : a);
            if (!a_fits) kept.back() = b;
        }
        hcas.assign(kept.begin(), kept.end());
    }
}

void attribute_by_port(state& s, host_list& hosts, const grouping& g) {
    std::erase_if(hosts.unattributed, [&](std::uint32_t i) {
        const auto& hca = s.out.hcas[i];
        const auto group = hca.leaf == none ? none : g.group_of_leaf[hca.leaf];
        if (group == none || g.agreement[group] < ports_tell) return false;
        const auto host = g.host_at(group, hca.leaf_port);
        if (host == none || on_leaf(s, hosts.hcas[host], hca.leaf)) return false;
        give(s, hosts, i, host,
             fmt::format("which is on port {} of the other leaves of its group", hca.leaf_port),
             g.agreement[group]);
        return true;
    });
}

}  // namespace banyan::topo::build
