// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/release/layout.hpp"

#include <bitset>
#include <string>

#include <fmt/format.h>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {
namespace {

/// The kinds of structures that the plugins read.
enum kind : std::size_t {
    of_job,
    of_details,
    of_resources,
    of_part,
    of_reservation,
    of_step,
    of_node,
    of_config,
    of_gres,
    of_job_gres,
    of_step_gres,
    kinds
};

std::bitset<kinds> known_to_fit;
bool differs = false;

/// Empty where it fits. `magic`: where the structure has a magic number, and what that is to be.
template <class T, class... Magic>
std::string difference(const char* name, const T* object, Magic... magic) {
    const auto theirs = slurm_xsize(const_cast<T*>(object));
    if (theirs != sizeof(T))
        return fmt::format("{} has {} bytes here, and {} in the headers", name, theirs, sizeof(T));
    if constexpr (sizeof...(magic) != 0)
        if (((object->magic != static_cast<std::uint32_t>(magic)) || ...))
            return fmt::format("{} has its {} bytes, but no magic number where it was", name, theirs);
    return {};
}

template <class T, class... Magic>
bool fits(kind which, const char* name, const T* object, Magic... magic) {
    if (known_to_fit[which] || !object) return true;
    const auto wrong = difference(name, object, magic...);
    if (wrong.empty()) {
        known_to_fit.set(which);
        return true;
    }
    differs = true;
    log_error(
        fmt::format("built with the headers of another Slurm than the one that runs, both of which call "
                    "themselves {}: {}. Jobs are placed as by select/cons_tres; build banyan with the "
                    "source of this very Slurm",
                    SLURM_VERSION_STRING, wrong));
    return false;
}

const step_record_t* some_step(const job_record_t& job) {
    for (const auto* step : entries<step_record_t>(job.step_list)) return step;
    return nullptr;
}

/// Before a job has its own, which it gets where it is placed.
bool resources_fit() {
    if (known_to_fit[of_resources]) return true;
    auto* one = create_job_resources();
    const bool out = fits(of_resources, "job_resources_t", one);
    free_job_resources(&one);
    return out;
}

}  // namespace

// In this order: no pointer is followed out of an object that does not fit.
bool layout_fits(const job_record_t* job) {
    if (differs || !job || known_to_fit.all()) return !differs;
    return fits(of_job, "job_record_t", job, JOB_MAGIC) &&
           fits(of_details, "job_details_t", job->details, DETAILS_MAGIC) && resources_fit() &&
           fits(of_part, "part_record_t", job->part_ptr, PART_MAGIC) &&
           fits(of_reservation, "slurmctld_resv_t", job->resv_ptr) &&
           (known_to_fit[of_step] || layout_fits(some_step(*job)));
}

bool layout_fits(const step_record_t* step) {
    return !differs && fits(of_step, "step_record_t", step, STEP_MAGIC);
}

bool gres_fit(const job_record_t& job) {
    if (differs) return false;
    for (const auto list : {job.gres_list_req, job.gres_list_alloc})
        for (const auto* entry : entries<gres_state_t>(list))
            if (!fits(of_gres, "gres_state_t", entry) ||
                !fits(of_job_gres, "gres_job_state_t",
                      static_cast<const gres_job_state_t*>(entry->gres_data)))
                return false;
    for (const auto* step : entries<step_record_t>(job.step_list))
        for (const auto* entry : entries<gres_state_t>(step->gres_list_alloc))
            if (!fits(of_step_gres, "gres_step_state_t",
                      static_cast<const gres_step_state_t*>(entry->gres_data)))
                return false;
    return true;
}

bool layout_fits(const node_record_t* node) {
    return !differs && fits(of_node, "node_record_t", node, NODE_MAGIC) &&
           (!node || fits(of_config, "config_record_t", node->config_ptr, CONFIG_MAGIC));
}

}  // namespace banyan::slurm
