// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/growth/job_nodes.hpp"

namespace banyan::slurm {

std::vector<origin> origins(const bitstr_t* job, const bitstr_t* donor, const bitstr_t* after) {
    std::vector<origin> out;
    std::size_t in_job = 0, in_donor = 0;
    const auto has = [](const bitstr_t* map, bitoff_t i) { return map && is_set(map, i); };
    for (bitoff_t i = 0; i < bit_size(const_cast<bitstr_t*>(after)); ++i) {
        if (has(after, i)) {
            if (has(job, i))
                out.push_back({static_cast<int>(i), false, in_job});
            else if (has(donor, i))
                out.push_back({static_cast<int>(i), true, in_donor});
        }
        in_job += has(job, i);
        in_donor += has(donor, i);
    }
    return out;
}

}  // namespace banyan::slurm
