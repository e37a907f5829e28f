// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/pci_places.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <hwloc.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "hardware/machine_topology.hpp"

namespace banyan::hardware {
namespace {

constexpr unsigned nvidia = 0x10de, class_display = 0x03, class_infiniband = 0x0207;

using pci_attributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

bool is_gpu(const pci_attributes& pci) {
    return pci.vendor_id == nvidia && pci.class_id >> 8 == class_display;
}

std::string card_of(const pci_attributes& pci) {
    return fmt::format("{:04x}:{:02x}:{:02x}", pci.domain, pci.bus, pci.dev);
}

/// What the kernel's drivers of HCAs call it: also those that speak Ethernet.
std::string hca_name(hwloc_obj_t device) {
    for (auto* child = device->io_first_child; child != nullptr; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr &&
            child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && child->name)
            return child->name;
    return {};
}

/// From the device up, without those that join the processor's own buses.
std::vector<hwloc_obj_t> bridges_above(hwloc_obj_t device) {
    std::vector<hwloc_obj_t> out;
    for (auto* at = device->parent; at != nullptr; at = at->parent)
        if (at->type == HWLOC_OBJ_BRIDGE && at->attr &&
            at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            out.push_back(at);
    return out;
}

int numa_of(hwloc_topology_t t, hwloc_obj_t device) {
    const auto* near = hwloc_get_non_io_ancestor_obj(t, device);
    if (!near || !near->nodeset || hwloc_bitmap_weight(near->nodeset) != 1) return -1;
    return hwloc_bitmap_first(near->nodeset);
}

}  // namespace

result<std::vector<pci_place>> look_at_pci() {
    BANYAN_TRY(const auto t, machine_topology());
    std::vector<pci_place> out;
    std::vector<hwloc_obj_t> devices;
    std::map<hwloc_obj_t, std::set<std::string>> below;
    for (hwloc_obj_t obj = nullptr; (obj = hwloc_get_next_pcidev(t.get(), obj)) != nullptr;) {
        if (!obj->attr || out.size() >= most_pci_places) continue;
        const auto& pci = obj->attr->pcidev;
        auto name = hca_name(obj);
        if (!is_gpu(pci) && name.empty() && pci.class_id != class_infiniband) continue;
        for (auto* bridge : bridges_above(obj)) below[bridge].insert(card_of(pci));
        out.push_back({card_of(pci), std::move(name), {}, numa_of(t.get(), obj)});
        devices.push_back(obj);
    }
    for (std::size_t n = 0; n < out.size(); ++n)
        for (auto* bridge : bridges_above(devices[n]))
            if (below[bridge].size() > 1) {
                const auto& pci = bridge->attr->bridge.upstream.pci;
                out[n].pci_switch = fmt::format("{}.{:x}", card_of(pci), pci.func);
                break;
            }
    return out;
}

nlohmann::json to_json(const std::vector<pci_place>& places) {
    auto out = nlohmann::json::array();
    for (const auto& p : places)
        out.push_back({{"bdf", p.bdf}, {"name", p.name}, {"switch", p.pci_switch}, {"numa", p.numa}});
    return {{"devices", std::move(out)}};
}

result<std::vector<pci_place>> pci_places_from(const nlohmann::json& told) {
    BANYAN_TRY(const auto devices, json_fields(told).list("devices", most_pci_places));
    std::vector<pci_place> out;
    for (const auto& in : devices) {
        pci_place p;
        BANYAN_CHECK(in.may("bdf", p.bdf));
        BANYAN_CHECK(in.may("name", p.name));
        BANYAN_CHECK(in.may("switch", p.pci_switch));
        BANYAN_CHECK(in.may("numa", p.numa));
        out.push_back(std::move(p));
    }
    return out;
}

}  // namespace banyan::hardware
