// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/machine.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <hwloc.h>

#include "topo/export/trial.hpp"

namespace banyan::topo {
namespace {

constexpr std::uint16_t nvidia = 0x10de;
constexpr std::uint16_t class_display = 0x03;
/// A PCIe tree has a few levels; an XML may claim any number.
constexpr int deepest = 64;

struct destroy {
    void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using topology = std::unique_ptr<hwloc_topology, destroy>;

std::string text_of(const char* s) { return s ? s : ""; }

std::string info(hwloc_obj_t obj, const char* key) {
    return obj ? text_of(hwloc_obj_get_info_by_name(obj, key)) : "";
}

/// 32-bit words in hex, the highest first.
std::string mask_text(hwloc_const_bitmap_t set) {
    const int last = set ? hwloc_bitmap_last(set) : -1;
    std::string out;
    for (int word = std::max(last, 0) / 32; word >= 0; --word) {
        std::uint32_t bits = 0;
        for (int bit = 0; bit < 32 && last >= 0; ++bit)
            if (hwloc_bitmap_isset(set, static_cast<unsigned>(word * 32 + bit))) bits |= 1u << bit;
        out += fmt::format("{}{:08x}", out.empty() ? "" : ",", bits);
    }
    return out;
}

class reader {
  public:
    explicit reader(hwloc_topology_t t) : t_(t) {}

    machine read() {
        const auto root = hwloc_get_root_obj(t_);
        out_.host_name = info(root, "HostName");
        out_.architecture = info(root, "Architecture");
        walk(root, UINT32_MAX, 0);
        return std::move(out_);
    }

  private:
    void walk(hwloc_obj_t obj, std::uint32_t bridge, int depth) {
        if (depth > deepest) return;
        for (auto child = obj->memory_first_child; child; child = child->next_sibling)
            walk(child, bridge, depth + 1);
        for (auto child = obj->first_child; child; child = child->next_sibling)
            walk(child, bridge, depth + 1);
        for (auto child = obj->io_first_child; child; child = child->next_sibling) {
            auto above = bridge;
            if (child->type == HWLOC_OBJ_BRIDGE && child->attr) {
                if (child->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
                    ++host_bridge_;
                    above = UINT32_MAX;
                } else {
                    above = add(child, io_kind::bridge, child->attr->bridge.upstream.pci, bridge);
                }
            } else if (child->type == HWLOC_OBJ_PCI_DEVICE && child->attr) {
                take_device(child, bridge);
            }
            walk(child, above, depth + 1);
        }
    }

    void take_device(hwloc_obj_t obj, std::uint32_t bridge) {
        std::vector<std::string> names;
        for (auto os = obj->io_first_child; os; os = os->next_sibling)
            if (os->type == HWLOC_OBJ_OS_DEVICE && os->attr &&
                os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && os->name)
                names.emplace_back(os->name);
        const auto& pci = obj->attr->pcidev;
        if (!names.empty())
            out_.devices[add(obj, io_kind::hca, pci, bridge)].names = std::move(names);
        else if (pci.vendor_id == nvidia && pci.class_id >> 8 == class_display)
            add(obj, io_kind::gpu, pci, bridge);
    }

    std::uint32_t add(hwloc_obj_t obj, io_kind kind, const hwloc_obj_attr_u::hwloc_pcidev_attr_s& pci,
                      std::uint32_t bridge) {
        io_device d;
        d.kind = kind;
        d.busid = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
        d.pci_class = pci.class_id;
        d.vendor = pci.vendor_id;
        d.device = pci.device_id;
        d.subsystem_vendor = pci.subvendor_id;
        d.subsystem_device = pci.subdevice_id;
        d.gbytes_per_s = static_cast<double>(pci.linkspeed);
        d.parent = bridge;
        d.host_bridge = host_bridge_;
        d.cpu = cpu_of(obj);
        out_.devices.push_back(std::move(d));
        return static_cast<std::uint32_t>(out_.devices.size() - 1);
    }

    std::uint32_t cpu_of(hwloc_obj_t obj) {
        const auto place = hwloc_get_non_io_ancestor_obj(t_, obj);
        const bool one = place && place->nodeset && hwloc_bitmap_weight(place->nodeset) == 1;
        const int numa = one ? hwloc_bitmap_first(place->nodeset) : -1;
        for (std::uint32_t i = 0; i < out_.cpus.size(); ++i)
            if (out_.cpus[i].numa == numa) return i;
        const auto node = one ? hwloc_get_numanode_obj_by_os_index(t_, static_cast<unsigned>(numa)) : nullptr;
        out_.cpus.push_back(describe(numa, node ? node : hwloc_get_root_obj(t_)));
        return static_cast<std::uint32_t>(out_.cpus.size() - 1);
    }

    machine_cpu describe(int numa, hwloc_obj_t where) const {
        machine_cpu cpu;
        cpu.numa = numa;
        cpu.affinity = mask_text(where->cpuset);
        for (hwloc_obj_t p = nullptr; (p = hwloc_get_next_obj_by_type(t_, HWLOC_OBJ_PACKAGE, p));) {
            if (!where->cpuset || !p->cpuset || !hwloc_bitmap_intersects(p->cpuset, where->cpuset)) continue;
            cpu.vendor = info(p, "CPUVendor");
            cpu.family = info(p, "CPUFamilyNumber");
            cpu.model = info(p, "CPUModelNumber");
            break;
        }
        return cpu;
    }

    hwloc_topology_t t_;
    machine out_;
    std::uint32_t host_bridge_ = 0;
};

result<topology> fresh(unsigned long flags) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return fail(errc::exhausted, "libhwloc cannot make a topology");
    topology t(raw);
    hwloc_topology_set_flags(raw, flags);
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
    return t;
}

}  // namespace

result<machine> read_hwloc_xml(const std::string& text, const std::string& name) {
    const auto unreadable = [&] {
        return fail(
            errc::invalid_input,
            fmt::format("{} is not a topology that libhwloc {} can read", name, HWLOC_API_VERSION >> 16),
            "write it on a node with: lstopo --of xml FILE");
    };
    if (text.size() > max_hwloc_bytes || text.find('\0') != std::string::npos) return unreadable();
    machine m;
    const auto load = [&] {
        const auto t = fresh(0);
        // The length includes the zero at the end.
        if (!t ||
            hwloc_topology_set_xmlbuffer(t->get(), text.c_str(), static_cast<int>(text.size() + 1)) != 0 ||
            hwloc_topology_load(t->get()) != 0)
            return false;
        m = reader(t->get()).read();
        return true;
    };
    // libhwloc 2.9 ends with a segmentation fault on some damaged files.
    if (!survives(load) || !load()) return unreadable();
    if (m.devices.empty())
        return fail(
            errc::invalid_input, fmt::format("{} has no PCI device that counts: no GPU, HCA or bridge", name),
            "write it on the node itself, outside a container that hides devices: lstopo --of xml FILE");
    return m;
}

result<machine> read_live_machine() {
    BANYAN_TRY(const auto t, fresh(HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED));
    if (hwloc_topology_load(t.get()) != 0)
        return fail(errc::unavailable, "libhwloc cannot look at this machine", "is /sys mounted?");
    return reader(t.get()).read();
}

machine prune(const machine& m, const std::vector<std::string>& hcas) {
    const auto wanted = [&](const io_device& d) {
        if (d.kind == io_kind::gpu) return true;
        return std::any_of(d.names.begin(), d.names.end(), [&](const auto& n) {
            return std::find(hcas.begin(), hcas.end(), n) != hcas.end();
        });
    };
    // How many branches with something wanted each bridge joins; children stand after their parents.
    std::vector<std::uint32_t> branches(m.devices.size());
    const auto counts = [&](std::size_t i) {
        return m.devices[i].kind == io_kind::bridge ? branches[i] > 0 : wanted(m.devices[i]);
    };
    for (auto i = m.devices.size(); i-- > 0;)
        if (counts(i) && m.devices[i].parent != UINT32_MAX) ++branches[m.devices[i].parent];
    machine out;
    out.host_name = m.host_name;
    out.architecture = m.architecture;
    out.cpus = m.cpus;
    std::vector<std::uint32_t> stands_for(m.devices.size(),
                                          UINT32_MAX);  // itself, or the nearest kept bridge above
    for (std::size_t i = 0; i < m.devices.size(); ++i) {
        auto d = m.devices[i];
        d.parent = d.parent == UINT32_MAX ? UINT32_MAX : stands_for[d.parent];
        stands_for[i] = d.parent;
        if (d.kind == io_kind::bridge ? branches[i] < 2 : !wanted(d)) continue;
        stands_for[i] = static_cast<std::uint32_t>(out.devices.size());
        out.devices.push_back(std::move(d));
    }
    return out;
}

}  // namespace banyan::topo
