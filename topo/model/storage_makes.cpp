// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/storage_makes.hpp"

#include <algorithm>
#include <map>

namespace banyan::topo::build {

std::vector<host_make> makes_of(const state& s, const host_list& hosts) {
    std::map<std::vector<std::uint32_t>, host_make> found;
    for (std::uint32_t h = 0; h < hosts.hcas.size(); ++h) {
        std::map<std::uint32_t, std::uint32_t> leaf_of;
        for (const auto i : hosts.hcas[h]) leaf_of[s.device_of_hca[i]] = s.out.hcas[i].leaf;
        if (leaf_of.size() < 2 || leaf_of.size() < hosts.hcas[h].size() || leaf_of.contains(none)) continue;
        std::vector<std::uint32_t> devices;
        for (const auto& [device, leaf] : leaf_of) devices.push_back(device);
        auto& make = found[devices];
        make.devices = devices;
        make.leaves.resize(devices.size());
        make.hosts.push_back(h);
        for (std::size_t d = 0; d < devices.size(); ++d) make.leaves[d].push_back(leaf_of[devices[d]]);
    }
    std::vector<host_make> out;
    for (auto& [devices, make] : found) {
        const bool linked = std::all_of(make.leaves.begin(), make.leaves.end(), [](const auto& leaves) {
            return std::any_of(leaves.begin(), leaves.end(), [](auto leaf) { return leaf != none; });
        });
        if (make.hosts.size() >= 3 && linked) out.push_back(std::move(make));
    }
    return out;
}

}  // namespace banyan::topo::build
