// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/ctld_tables.hpp"

#include <algorithm>
#include <type_traits>

#include <dlfcn.h>

#include "slurmctld-plugin/release/layout.hpp"

namespace banyan::slurm {

bool ctld_tables::load() {
    const auto find = [](auto& variable, const char* name) {
        variable = reinterpret_cast<std::remove_reference_t<decltype(variable)>>(::dlsym(RTLD_DEFAULT, name));
        return variable != nullptr;
    };
    return find(node_table_, "node_record_table_ptr") && find(node_count_, "node_record_count") &&
           find(idle_, "idle_node_bitmap") && find(completing_, "cg_node_bitmap") &&
           find(available_, "avail_node_bitmap") && find(up_, "up_node_bitmap") &&
           find(share_, "share_node_bitmap") && find(jobs_, "job_list") &&
           find(filter_, "job_req_node_filter") && find(control_time_, "control_time") &&
           find(config_, "slurmctld_config");
}

const ctld_tables* ctld_tables::get() {
    static ctld_tables instance;
    static const bool here = instance.load();
    const bool filled = here && *instance.idle_ && *instance.completing_ && *instance.available_ &&
                        *instance.up_ && *instance.share_ && *instance.jobs_ && *instance.node_table_;
    return filled && layout_fits(instance.some_node()) ? &instance : nullptr;
}

const node_record_t* ctld_tables::some_node() const {
    for (int index = 0; index < nodes(); ++index)
        if (const auto* one = node(index)) return one;
    return nullptr;
}

bitmap ctld_tables::fit_for(job_record_t& job) const {
    bitmap nodes(bit_copy(*available_));
    if (job.part_ptr && job.part_ptr->node_bitmap) bit_and(nodes.get(), job.part_ptr->node_bitmap);
    if (job.resv_ptr && job.resv_ptr->node_bitmap) bit_and(nodes.get(), job.resv_ptr->node_bitmap);
    if (job.details->exc_node_bitmap) bit_and_not(nodes.get(), job.details->exc_node_bitmap);
    if (filter_(&job, nodes.get(), true) != SLURM_SUCCESS) bit_clear_all(nodes.get());
    return nodes;
}

std::uint32_t ctld_tables::most_cpus() const {
    std::uint32_t most = 0;
    for (int index = 0; index < nodes(); ++index)
        if (const auto* one = node(index)) most = std::max<std::uint32_t>(most, one->cpus);
    return most;
}

std::uint64_t ctld_tables::most_memory_mib() const {
    std::uint64_t most = 0;
    for (int index = 0; index < nodes(); ++index)
        if (const auto* one = node(index)) most = std::max<std::uint64_t>(most, one->real_memory);
    return most;
}

int ctld_tables::find_node(const std::string& name) const {
    // The one that logs no error for what is no node: a fabric has hosts that slurm.conf lacks.
    const node_record_t* found = find_node_record2(const_cast<char*>(name.c_str()));
    return found ? found->index : -1;
}

std::vector<int> ctld_tables::find_nodes(const std::vector<std::string>& names) const {
    std::vector<int> found;
    found.reserve(names.size());
    for (const auto& name : names) found.push_back(find_node(name));
    return found;
}

std::vector<std::string> ctld_tables::addresses_of(const std::vector<std::string>& names) const {
    std::vector<std::string> addresses;
    addresses.reserve(names.size());
    for (const auto& name : names) {
        const int found = find_node(name);
        const char* address = found >= 0 ? node(found)->comm_name : nullptr;
        addresses.emplace_back(address ? address : name.c_str());
    }
    return addresses;
}

}  // namespace banyan::slurm
