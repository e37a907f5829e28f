// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

std::uint32_t host_or_complain(state& s, const std::string& name, const std::string& where) {
    const auto at = find_host(s.out, name);
    if (at == none)
        s.report("unknown-host", {name},
                 fmt::format("the site file names it in {}; the fabric has no such host", where), 1.0);
    return at;
}

/// The island of the first host that the fabric knows; none when it knows no one of them.
std::uint32_t island_of(state& s, const std::vector<std::string>& hosts) {
    auto island = none;
    for (const auto& name : hosts)
        if (const auto h = host_or_complain(s, name, "a WAN link");
            h != none && island == none && s.out.hosts[h].leaf_group != none)
            island = s.out.leaf_groups[s.out.hosts[h].leaf_group].island;
    return island;
}

/// A host's block is the leaf that it is on.
void take_blocks(state& s) {
    for (auto& h : s.out.hosts)
        if (!h.hcas.empty() && s.out.hcas[h.hcas[0]].leaf != none)
            h.nvlink_domain = s.out.switches[s.out.hcas[h.hcas[0]].leaf].name;
}

/// Whose agent has not told stays in the domain that it was in.
void take_told_domains(state& s) {
    const auto& told = s.options.site.nvlink_domain_of;
    const auto* last = s.options.previous;
    bool any = told.empty();
    for (auto& h : s.out.hosts) {
        if (const auto at = told.find(h.name); at != told.end()) {
            any = true;
            h.nvlink_domain = at->second;
        } else if (last) {
            const auto before = find_host(*last, h.name);
            if (before != none) h.nvlink_domain = last->hosts[before].nvlink_domain;
        }
    }
    if (!any)
        s.report("unknown-host", {told.begin()->first},
                 fmt::format("{} has it, and no host of the fabric: are nodes called otherwise?",
                             s.options.site.nvlink_domain_file),
                 1.0);
}

void take_domains(state& s) {
    if (s.source.blocks && s.options.site.blocks_are_nvlink_domains) take_blocks(s);
    if (!s.options.site.nvlink_domain_file.empty()) take_told_domains(s);
    for (const auto& d : s.options.site.nvlink_domains)
        for (const auto& name : d.hosts)
            if (const auto h = host_or_complain(s, name, fmt::format("NVLink domain {}", d.name)); h != none)
                s.out.hosts[h].nvlink_domain = d.name;
}

}  // namespace

void take_site(state& s) {
    const auto& site = s.options.site;
    for (const auto& d : site.failure_domains)
        for (const auto& name : d.hosts)
            if (const auto h = host_or_complain(s, name, fmt::format("{} {}", d.kind, d.name)); h != none)
                s.out.hosts[h].failure_domains.push_back(fmt::format("{}={}", d.kind, d.name));
    take_domains(s);
    for (const auto& w : site.wan) {
        const auto a = island_of(s, w.a), b = island_of(s, w.b);
        if (a != none && b != none) s.out.wan.push_back({a, b, w.gbps});
    }
}

}  // namespace banyan::topo::build
