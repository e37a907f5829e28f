// SPDX-License-Identifier: BSD-3-Clause
//
// hwloc's objects as machine parts. Link speeds are left out: an idle GPU lowers its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include "common/child.hpp"
#include "hardware/machine_topology.hpp"
#include "sweep/topology.hpp"

namespace banyan::sweep {
namespace {

/// "2 packages with 64 cores" is told core by core: each by the numbers that the kernel gives it.
void take(hwloc_obj_t obj, machine_parts& out) {
    switch (obj->type) {
        case HWLOC_OBJ_PACKAGE:
            out[fmt::format("package {}", obj->os_index)];
            break;
        case HWLOC_OBJ_PU:
            out[fmt::format("CPU {}", obj->os_index)];
            break;
        case HWLOC_OBJ_NUMANODE:
            out[fmt::format("NUMA node {}", obj->os_index)].bytes =
                obj->attr ? obj->attr->numanode.local_memory : 0;
            break;
        case HWLOC_OBJ_PCI_DEVICE: {
            if (!obj->attr) break;
            const auto& pci = obj->attr->pcidev;
            out[fmt::format("PCI {:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func)].is =
                fmt::format("{:04x}:{:04x}, class {:04x}", pci.vendor_id, pci.device_id, pci.class_id);
            break;
        }
        case HWLOC_OBJ_OS_DEVICE:
            if (obj->attr && obj->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && obj->name)
                out[fmt::format("HCA {}", obj->name)];
            break;
        default:
            break;
    }
}

/// Without recursion: an XML may nest as deep as it likes.
machine_parts parts_of(hwloc_topology_t t) {
    machine_parts out;
    for (const auto type :
         {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_PU, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PCI_DEVICE, HWLOC_OBJ_OS_DEVICE})
        for (hwloc_obj_t obj = nullptr; (obj = hwloc_get_next_obj_by_type(t, type, obj)) != nullptr;)
            take(obj, out);
    return out;
}

bool load(hwloc_topology_t t, const std::string& xml) {
    // The length includes the zero at the end.
    return hwloc_topology_set_xmlbuffer(t, xml.c_str(), static_cast<int>(xml.size() + 1)) == 0 &&
           hwloc_topology_load(t) == 0;
}

/// libhwloc 2.9 ends with a segmentation fault on some damaged files.
bool survives(const std::string& xml) {
    const auto tried = run_forked([&] {
        const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        ::dup2(nowhere, STDERR_FILENO);
        const auto t = hardware::fresh_topology();
        if (!t || !load(t->get(), xml)) return 1;
        return parts_of(t->get()).empty() ? 1 : 0;
    });
    return tried && tried->code == 0;
}

}  // namespace

result<machine_parts> look_at_machine(std::string* xml) {
    BANYAN_TRY(const auto t, hardware::machine_topology());
    if (xml) {
        char* text = nullptr;
        int length = 0;
        if (hwloc_topology_export_xmlbuffer(t.get(), &text, &length, 0) != 0)
            return fail(errc::internal, "libhwloc cannot write XML");
        *xml = text;
        hwloc_free_xmlbuffer(t.get(), text);
    }
    return parts_of(t.get());
}

result<machine_parts> read_topology(const std::string& xml, const std::string& name) {
    const auto unreadable = [&] {
        return fail(errc::invalid_input, fmt::format("{} is not a topology that libhwloc can read", name),
                    "write it on a node that is well: banyan-sweep --write-topology FILE");
    };
    if (xml.size() > max_topology_bytes || xml.find('\0') != std::string::npos || !survives(xml))
        return unreadable();
    BANYAN_TRY(const auto t, hardware::fresh_topology());
    if (!load(t.get(), xml)) return unreadable();
    return parts_of(t.get());
}

}  // namespace banyan::sweep
