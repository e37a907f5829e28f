// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/machine_topology.hpp"

#include <hwloc.h>

namespace banyan::hardware {

void destroy_topology::operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }

result<owned_topology> fresh_topology() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return fail(errc::exhausted, "libhwloc cannot make a topology");
    owned_topology t(raw);
    // What PCI tells is enough: these would start the libraries of GPUs, on which others compute.
    for (const char* component : {"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi"})
        (void)hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    return t;
}

result<owned_topology> machine_topology() {
    BANYAN_TRY(auto t, fresh_topology());
    if (hwloc_topology_load(t.get()) != 0)
        return fail(errc::unavailable, "libhwloc cannot look at this machine", "is /sys mounted?");
    return t;
}

}  // namespace banyan::hardware
