// SPDX-License-Identifier: BSD-3-Clause
//
// The HCAs of a host often come from one batch: their GUIDs follow each other as their numbers do. So the
// GUID of one without a name may show whose it is, and which of its host's.
#include <algorithm>
#include <map>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/hosts.hpp"

namespace banyan::topo::build {
namespace {

constexpr float in_step = 0.85f;    ///< where three or more of the host's others have one step
constexpr float in_between = 0.7f;  ///< where the neighbours are its host's, and it lacks the number between
constexpr std::uint32_t most_devices = 64;  ///< of a host, as far as their numbers are looked at

struct numbered {
    std::uint32_t host = none, device = none;
};

using by_device = std::map<std::uint32_t, guid>;

/// None where a number is doubled.
by_device devices_of(const state& s, const std::vector<std::uint32_t>& hcas) {
    by_device out;
    for (const auto i : hcas) {
        const auto device = s.device_of_hca[i];
        if (s.host_name_of_hca[i].empty() || device >= most_devices) continue;
        if (!out.emplace(device, s.out.hcas[i].id).second) return {};
    }
    return out;
}

/// The GUID that follows from one number to the next; 0 where it is not the same between all.
guid step_of(const by_device& devices) {
    if (devices.size() < 3) return 0;
    const auto first = devices.begin(), second = std::next(first);
    const guid gap = second->first - first->first, distance = second->second - first->second;
    // Signed, since the order may be the other way round.
    const auto step = static_cast<std::int64_t>(distance) / static_cast<std::int64_t>(gap);
    for (const auto& [device, id] : devices)
        if (id != first->second + static_cast<guid>(step) * (device - first->first)) return 0;
    return static_cast<guid>(step);
}

/// By GUID: the host and number that an HCA with it should have.
boost::unordered_flat_map<guid, numbered> predicted(const state& s, const host_list& hosts) {
    std::vector<by_device> all;
    std::uint32_t most = 0;
    for (const auto& hcas : hosts.hcas) {
        all.push_back(devices_of(s, hcas));
        if (!all.back().empty()) most = std::max(most, all.back().rbegin()->first);
    }
    boost::unordered_flat_map<guid, numbered> out;
    for (std::uint32_t h = 0; h < all.size(); ++h) {
        const auto step = step_of(all[h]);
        if (step == 0) continue;
        const auto& [first, id] = *all[h].begin();
        for (std::uint32_t device = 0; device <= most; ++device) {
            if (all[h].contains(device)) continue;
            const auto [at, fresh] = out.try_emplace(id + step * (guid{device} - first), numbered{h, device});
            if (!fresh) at->second = {};
        }
    }
    return out;
}

/// By HCA, in the order of GUIDs, which is that of the HCAs: the host and number that the neighbours leave.
numbered between(const state& s, const std::vector<std::uint32_t>& host_of, std::uint32_t hca) {
    if (hca == 0 || hca + 1 >= host_of.size()) return {};
    const auto host = host_of[hca - 1];
    if (host == none || host != host_of[hca + 1]) return {};
    const auto a = s.device_of_hca[hca - 1], b = s.device_of_hca[hca + 1];
    if (a == none || b == none || std::max(a, b) - std::min(a, b) != 2) return {};
    return {host, std::min(a, b) + 1};
}

bool has(const state& s, const std::vector<std::uint32_t>& hcas, std::uint32_t device) {
    return std::any_of(hcas.begin(), hcas.end(), [&](auto i) { return s.device_of_hca[i] == device; });
}

/// Whether another host sits where this HCA is, and has its own HCA of that rail where the HCA of `host`
/// should be.
bool trades_places(const state& s, const host_list& hosts, const grouping& g, std::uint32_t hca,
                   std::uint32_t host) {
    const auto& h = s.out.hcas[hca];
    const auto group = h.leaf == none ? none : g.group_of_leaf[h.leaf];
    if (group == none || group != g.group_of_host[host]) return false;
    const auto other = g.host_at(group, h.leaf_port);
    return other != none && other != host &&
           std::any_of(hosts.hcas[other].begin(), hosts.hcas[other].end(), [&](auto i) {
               return s.out.hcas[i].leaf == h.leaf && s.out.hcas[i].leaf_port == g.port_of_host[host];
           });
}

/// Whether a host of another group sits where this HCA is, and lacks one there: GUIDs of two batches are in
/// step by chance, two gaps fit each other by chance far less often.
bool fills_gap_of_others(const state& s, const host_list& hosts, const grouping& g, std::uint32_t hca,
                         std::uint32_t host) {
    const auto& h = s.out.hcas[hca];
    const auto group = h.leaf == none ? none : g.group_of_leaf[h.leaf];
    if (group == none || group == g.group_of_host[host] || g.agreement[group] < ports_tell) return false;
    const auto other = g.host_at(group, h.leaf_port);
    return other != none && std::none_of(hosts.hcas[other].begin(), hosts.hcas[other].end(),
                                         [&](auto i) { return s.out.hcas[i].leaf == h.leaf; });
}

}  // namespace

void attribute_by_step(state& s, host_list& hosts, const grouping& groups) {
    s.told_by_guid.assign(s.out.hcas.size(), 0);
    const auto should = predicted(s, hosts);
    std::erase_if(hosts.unattributed, [&](std::uint32_t i) {
        const auto at = should.find(s.out.hcas[i].id);
        if (at == should.end() || at->second.host == none ||
            fills_gap_of_others(s, hosts, groups, i, at->second.host))
            return false;
        s.told_by_guid[i] = in_step;
        s.device_of_hca[i] = at->second.device;
        give(s, hosts, i, at->second.host, "its GUID is in step with those of its other HCAs", in_step);
        return true;
    });
}

void attribute_by_neighbours(state& s, host_list& hosts, const grouping& groups) {
    std::vector<std::uint32_t> host_of(s.out.hcas.size(), none);
    for (std::uint32_t h = 0; h < hosts.hcas.size(); ++h)
        for (const auto i : hosts.hcas[h]) host_of[i] = h;
    const auto number = [&](std::uint32_t i, const numbered& n) {
        s.told_by_guid[i] = in_between;
        s.device_of_hca[i] = n.device;
    };
    std::vector<std::pair<std::uint32_t, numbered>> found;
    for (std::uint32_t i = 0; i < host_of.size(); ++i) {
        if (!s.host_name_of_hca[i].empty() || s.device_of_hca[i] != none) continue;
        const auto n = between(s, host_of, i);
        if (n.host == none || has(s, hosts.hcas[n.host], n.device)) continue;
        // GUIDs in no order lie between two of one host by chance, too.
        if (host_of[i] == n.host || (host_of[i] == none && trades_places(s, hosts, groups, i, n.host)))
            found.emplace_back(i, n);
    }
    std::vector<bool> open(
        host_of.size());  // of those without a host, but for what is left out for another reason
    for (const auto i : hosts.unattributed) open[i] = true;
    for (const auto& [i, n] : found) {
        if (host_of[i] == none) {
            if (!open[i]) continue;
            open[i] = false;
            give(s, hosts, i, n.host, "the GUIDs next to its own are of that host", in_between);
        }
        number(i, n);
    }
    std::erase_if(hosts.unattributed, [&](auto i) { return !open[i]; });
}

}  // namespace banyan::topo::build
