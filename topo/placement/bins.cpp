// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/bins.hpp"

#include <algorithm>
#include <utility>

namespace banyan::topo {

float risk_of(const fabric& f, std::span<const float> risk, std::uint32_t host) {
    const float given = host < risk.size() ? risk[host] : 0;
    const auto group = f.hosts[host].leaf_group;
    const auto rails = group == none ? 0 : f.leaf_groups[group].leaves.size();
    // A job runs at the speed of its slowest rail.
    constexpr float degraded = 0.5f;
    if (f.hosts[host].slow || f.hosts[host].rails < rails) return std::max(given, degraded);
    return group != none && f.leaf_groups[group].thin ? std::max(given, below_a_bad_link) : given;
}

free_bins make_bins(const fabric& f, const candidates& from) {
    const auto groups = f.leaf_groups.size();
    std::vector<std::uint32_t> first(groups + 2);  // by group, the last for hosts without one
    const auto group_of = [&](std::uint32_t host) {
        return std::min<std::size_t>(f.hosts[host].leaf_group, groups);
    };
    for (const auto host : from.free) ++first[group_of(host) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    free_bins out;
    out.hosts.resize(from.free.size());
    auto next = first;
    for (const auto host : from.free) out.hosts[next[group_of(host)]++] = host;

    std::vector<bool> preferred(from.prefer.empty() ? 0 : f.hosts.size());
    for (const auto h : from.prefer)
        if (h < preferred.size()) preferred[h] = true;
    const auto is_preferred = [&](std::uint32_t host) { return !preferred.empty() && preferred[host]; };
    const auto key = [&](std::uint32_t host) {
        return std::pair(!is_preferred(host), host < from.risk.size() ? from.risk[host] : 0.f);
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
    const auto add = [&](location at, std::uint32_t begin, std::uint32_t end) {
        bin p;
        p.at = p.where = at;
        p.hosts = std::span(out.hosts).subspan(begin, end - begin);
        p.size = end - begin;
        p.preferred = static_cast<std::uint32_t>(std::count_if(p.hosts.begin(), p.hosts.end(), is_preferred));
        out.bins.push_back(p);
    };
    const auto nvlink_of = [&](std::uint32_t host) { return f.hosts[host].nvlink; };
    const bool domains =
        std::any_of(from.free.begin(), from.free.end(), [&](auto host) { return nvlink_of(host) != none; });
    for (std::uint32_t g = 0; g < groups; ++g) {
        const auto hosts = std::span(out.hosts).subspan(first[g], first[g + 1] - first[g]);
        if (hosts.empty()) continue;
        if (domains)
            std::stable_sort(hosts.begin(), hosts.end(),
                             [&](auto a, auto b) { return nvlink_of(a) < nvlink_of(b); });
        for (auto begin = first[g]; begin < first[g + 1];) {
            const auto nvlink = nvlink_of(out.hosts[begin]);
            auto end = begin;
            while (end < first[g + 1] && nvlink_of(out.hosts[end]) == nvlink) ++end;
            const auto some = std::span(out.hosts).subspan(begin, end - begin);
            if (!std::is_sorted(some.begin(), some.end(), before))
                std::stable_sort(some.begin(), some.end(), before);
            add({g, f.leaf_groups[g].spine_group, f.leaf_groups[g].island, nvlink}, begin, end);
            begin = end;
        }
    }
    for (auto i = first[groups]; i < first[groups + 1]; ++i) add({}, i, i + 1);
    // One level lower, for what counts levels.
    if (domains)
        for (std::uint32_t i = 0; i < out.bins.size(); ++i)
            if (auto& at = out.bins[i].at; at.known()) at = {i, at.leaf_group, at.island, at.nvlink};
    return out;
}

}  // namespace banyan::topo
