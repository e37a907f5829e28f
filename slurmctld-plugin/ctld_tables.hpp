// SPDX-License-Identifier: GPL-2.0-or-later
//
// The variables of slurmctld that the select plugin reads. They are looked up at run time: the plugin is also
// loaded into srun, slurmd, sinfo and others, which do not have them, and where it must do nothing.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "slurmctld-plugin/containers.hpp"

namespace banyan::slurm {

class ctld_tables {
  public:
    /// Null in every program but slurmctld, and where node records are not as the headers say.
    static const ctld_tables* get();

    int nodes() const { return *node_count_; }
    /// Null for a hole in the node table.
    const node_record_t* node(int index) const { return (*node_table_)[index]; }
    /// Index of the node called `name`, or -1.
    int find_node(const std::string& name) const;
    /// One for each name, in their order.
    std::vector<int> find_nodes(const std::vector<std::string>& names) const;
    /// Under which the nodes are reached: their names where slurm.conf says no other.
    std::vector<std::string> addresses_of(const std::vector<std::string>& names) const;
    /// CPUs of the largest node.
    std::uint32_t most_cpus() const;
    /// Of the node with the most memory; 1 or less where slurm.conf does not say.
    std::uint64_t most_memory_mib() const;
    const bitstr_t* idle_nodes() const { return *idle_; }
    const bitstr_t* up_nodes() const { return *up_; }
    /// Neither down nor drained.
    const bitstr_t* available_nodes() const { return *available_; }
    /// Those that no job has for itself. Slurm's own, to be changed with what it follows from.
    bitstr_t* share_nodes() const { return *share_; }
    list_ptr jobs() const { return *jobs_; }
    /// Not while slurmctld starts, is a backup that stands by, or ends: what it has then is not saved.
    bool in_control() const { return *control_time_ != 0 && config_->shutdown_time == 0; }
    /// The nodes of the job's partition and reservation that are up and have what it asks for, busy or not;
    /// also those that are reserved for others.
    bitmap fit_for(job_record_t& job) const;
    /// The node still ends its last job, and will be free after it: neither down nor drained.
    bool frees_up_soon(int index) const {
        return bit_test(*completing_, index) && bit_test(*available_, index);
    }

  private:
    bool load();
    const node_record_t* some_node() const;

    node_record_t*** node_table_ = nullptr;
    int* node_count_ = nullptr;
    bitstr_t** idle_ = nullptr;
    bitstr_t** completing_ = nullptr;
    bitstr_t** available_ = nullptr;
    bitstr_t** up_ = nullptr;
    bitstr_t** share_ = nullptr;
    list_ptr* jobs_ = nullptr;
    int (*filter_)(job_record_t*, bitstr_t*, bool) = nullptr;
    std::time_t* control_time_ = nullptr;
    slurmctld_config_t* config_ = nullptr;
};

}  // namespace banyan::slurm
