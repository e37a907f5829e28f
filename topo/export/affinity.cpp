// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/affinity.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace banyan::topo {
namespace {

pcie_path path_between(const machine& m, const io_device& a, const io_device& b) {
    int up_a = 0;
    for (auto p = a.parent; p != UINT32_MAX; p = m.devices[p].parent, ++up_a) {
        int up_b = 0;
        for (auto q = b.parent; q != UINT32_MAX; q = m.devices[q].parent, ++up_b)
            if (p == q) return up_a == 0 && up_b == 0 ? pcie_path::pix : pcie_path::pxb;
    }
    if (a.host_bridge == b.host_bridge) return pcie_path::phb;
    return a.cpu == b.cpu && m.cpus[a.cpu].numa >= 0 ? pcie_path::node : pcie_path::sys;
}

const io_device* find_hca(const machine& m, const std::string& name) {
    for (const auto& d : m.devices)
        if (std::find(d.names.begin(), d.names.end(), name) != d.names.end()) return &d;
    return nullptr;
}

}  // namespace

std::string_view name_of(pcie_path p) {
    constexpr std::string_view names[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    return names[static_cast<std::size_t>(p)];
}

std::string_view text_of(pcie_path p) {
    constexpr std::string_view texts[] = {"one PCIe switch", "several PCIe switches", "a host bridge",
                                          "one NUMA node", "several NUMA nodes"};
    return texts[static_cast<std::size_t>(p)];
}

std::vector<std::string> devices_of(const node_type& type) {
    std::vector<std::string> out;
    for (const auto& d : type.devices)
        if (!d.device.empty() && std::find(out.begin(), out.end(), d.device) == out.end())
            out.push_back(d.device);
    return out;
}

affinity_table affinity_of(const machine& whole, const node_type& type) {
    affinity_table out;
    const auto names = devices_of(type);
    const auto m = prune(whole, names);
    std::vector<std::pair<std::string, const io_device*>> hcas;
    for (const auto& name : names) {
        if (const auto* d = find_hca(m, name))
            hcas.emplace_back(name, d);
        else
            out.missing.push_back(name);
    }
    for (const auto& d : whole.devices)
        for (const auto& name : d.names)
            if (std::find(names.begin(), names.end(), name) == names.end()) out.unused.push_back(name);
    for (const auto& gpu : m.devices) {
        if (gpu.kind != io_kind::gpu) continue;
        gpu_affinity row;
        row.busid = gpu.busid;
        row.numa = m.cpus[gpu.cpu].numa;
        for (const auto& [name, hca] : hcas) {
            const auto path = path_between(m, gpu, *hca);
            if (path < row.path) row.nearest.clear();
            if (path > row.path) continue;
            row.path = path;
            row.nearest.push_back(name);
        }
        out.gpus.push_back(std::move(row));
    }
    std::sort(out.gpus.begin(), out.gpus.end(),
              [](const auto& a, const auto& b) { return a.busid < b.busid; });
    std::map<std::vector<std::string>, std::size_t> turn;
    for (auto& row : out.gpus) {
        if (row.nearest.empty()) continue;
        row.paired = row.nearest[turn[row.nearest]++ % row.nearest.size()];
        const auto at = std::find_if(type.devices.begin(), type.devices.end(),
                                     [&](const auto& d) { return d.device == row.paired; });
        row.rail = at->rail;
    }
    return out;
}

}  // namespace banyan::topo
