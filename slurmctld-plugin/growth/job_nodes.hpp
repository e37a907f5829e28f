// SPDX-License-Identifier: GPL-2.0-or-later
//
// Helpers for a job whose set of nodes changes: Slurm keeps what it knows of a job's nodes in arrays in the
// order of the node table, so a node that joins or leaves moves the others.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "slurmctld-plugin/containers.hpp"

namespace banyan::slurm {

inline gres_job_state_t& state_of(const gres_state_t* entry) {
    return *static_cast<gres_job_state_t*>(entry->gres_data);
}

/// Zeroed, to be freed by xfree.
template <class T>
T* array_of(std::size_t size) {
    return static_cast<T*>(slurm_xcalloc(size, sizeof(T), true, false, __FILE__, __LINE__, __func__));
}

/// Where a node of the job after a change was before it: at which offset, of the job itself or of the donor.
struct origin {
    int node;  ///< in the node table
    bool from_donor;
    std::size_t offset;
};

/// One for each node of `after`. `donor` may be null.
std::vector<origin> origins(const bitstr_t* job, const bitstr_t* donor, const bitstr_t* after);

}  // namespace banyan::slurm
