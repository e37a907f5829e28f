// SPDX-License-Identifier: BSD-3-Clause
//
// What root's programs tell of a job (common/job_news): one incident a job, whichever of its nodes, steps and
// runs tell it. It accuses a node by repetition alone, and is none where another fault explains it. A user
// can bring all of it about as often as he likes. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

inline constexpr std::string_view job_end_reason = "job-failed", job_damage_reason = "checkpoint-damaged";
inline constexpr std::string_view job_memory_reason = "job-memory", job_text_reason = "job-nccl";
/// Of what the kernel, the GPU driver and NCCL tell of applications.
inline constexpr std::array<std::string_view, 4> application_reasons{job_memory_reason, job_text_reason,
                                                                     "gpu-app", "gpu-note"};
/// Xids with such a reason that speak of the hardware: its memory, its links, its power.
inline constexpr std::array<std::uint32_t, 26> hardware_xids{63,  74,  92,  93,  94,  121, 144, 145, 146,
                                                             147, 148, 149, 150, 157, 160, 161, 164, 165,
                                                             167, 168, 169, 171, 172, 173, 175, 176};
/// Who closes one of a job or an application of which nothing was heard for a day.
inline constexpr std::string_view quiet_job_closes = "a day of quiet";

bool is_told_of_a_job(const kernel_fault& f);
/// banyan-run's word, which is its user's: it says nothing of when or where something ended.
bool is_given_up(const kernel_fault& f);
bool is_of_a_jobs_end(const incident& i);
bool is_told_of_a_job(const incident& i);
/// What is done about it is done to the job that it accuses alone, and to none where it accuses none: it was
/// told of that job, or its line is text of a user's, who may have written it about anybody.
bool concerns_one_job(const incident& i);
/// It accuses an application, or is harmless. A user can have any number of those, too.
bool is_of_an_application(const incident& i);

/// Whether the event `e`, told of a job, belongs to `i`: the job's own, or another fault that explains it.
bool belongs_to_a_job(const incident& i, const event& e, precedence w, std::int64_t window_ms);
/// The other way round: `e` explains the end that `i`, an incident of its own, was made of.
bool explains_a_jobs_end(const incident& i, const event& e, precedence w, std::int64_t window_ms);

/// Notes where the job was hit first: by step, of ends; by node, of damage. False where that is known
/// already, as of a task that ends after the first of its step: it may end because of that.
bool note_first(incident& i, const event& e);
/// One of those that accuse a node is still the first of its step: ends are not told in their order.
bool accuses_a_node(const incident& i);
/// It was hit first on `node`, after `since_ms`.
bool was_hit_on(const incident& i, std::string_view node, std::int64_t since_ms);

/// Nothing was heard of it for a day, nothing is being done about it, and nobody ruled on it. What a person
/// should look at for the sake of a GPU waits for that person.
bool is_quiet(const incident& i, std::int64_t now_ms);

}  // namespace banyan::fault
