// SPDX-License-Identifier: BSD-3-Clause
//
// One rule of a policy: which incidents it is for, and what it asks for. The words of the policy file are
// here (policy_file.hpp reads it).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fault/catalog/symptom.hpp"
#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

/// What is done. From `alert` on each with all that comes before it; the first three are by themselves, and
/// of the last five each is. A node that goes out needs no cable kept off.
enum class step_kind : std::uint8_t {
    ignore,
    none,
    tell,
    alert,
    seal,
    avoid,
    sweep,    ///< the node's agent is asked for a sweep
    restart,  ///< the job's training step is ended, and starts again on its nodes
    requeue,
    drain,
    node_out,
};

/// Something is done to jobs, and the node stays.
inline bool is_for_jobs(step_kind s) { return s == step_kind::restart || s == step_kind::requeue; }
/// Dry run and limits may hold it back, and a person may rule on it.
inline bool has_limits(step_kind s) { return s >= step_kind::sweep; }
/// The node stays in service.
inline bool keeps_the_node(step_kind s) { return s < step_kind::drain; }

/// Who told of the fault.
enum class line_kind : std::uint8_t {
    xid,      ///< the GPU driver, of a GPU
    sxid,     ///< the GPU driver, of an NVSwitch, or of NVLinks on many nodes
    symptom,  ///< the kernel, of a part of the node, without a number of the GPU driver
    fabric,   ///< the fabric, after the subnet manager's log told of a change
    silence,  ///< nobody: nothing on the node answers
    stuck,    ///< Slurm: the node does not end the last run of a job, which the others have
};
line_kind kind_of(const incident& i);

struct number_range {
    std::uint32_t first = 0, last = 0;
    bool operator==(const number_range&) const = default;
};

/// An empty list is for all.
struct criteria {
    std::vector<std::string> reasons, symptoms, swept;
    std::vector<line_kind> kinds;
    std::vector<number_range> xids, sxids;
    std::vector<severity> severities;
    std::vector<precedence> classes;
    std::vector<catalog::part> parts;
    std::vector<object_kind> objects;

    bool match(const incident& i) const;
};

struct rule {
    std::string name;
    criteria when;
    std::uint32_t count = 1;     ///< so often within the time, on the same part
    std::uint32_t jobs = 1;      ///< of so many jobs
    std::int64_t within_ms = 0;  ///< 0: the first time
    step_kind step = step_kind::none;
    bool busy = false;                   ///< of a sweep: also while jobs have the node
    std::string why;                     ///< in words
    std::uint32_t line = 0, column = 0;  ///< of the file
};

/// A sweep has to find the node unfit first, which no user brings about.
inline bool needs_unfit(const rule& r) { return r.when.swept.size() == 1 && r.when.swept.front() == "unfit"; }

// The words for them, in the order of the enumerators.
std::span<const std::string_view> action_words();  ///< ignore, note, tell, alert, seal ...
std::span<const std::string_view> kind_words();
std::span<const std::string_view> severity_words();
std::span<const std::string_view> class_words();
std::span<const std::string_view> part_words();
std::span<const std::string_view> object_words();
std::span<const std::string_view> swept_words();  ///< fit, unfit, unknown
/// Every reason that an incident can have, each with a page in docs/runbook.
std::span<const std::string_view> reason_words();
std::vector<std::string_view> symptom_words();

inline std::string_view name_of(step_kind s) { return action_words()[static_cast<std::size_t>(s)]; }
inline std::string_view name_of(line_kind k) { return kind_words()[static_cast<std::size_t>(k)]; }

/// A rule decided that nobody hears of it.
inline bool is_ignored(const incident& i) {
    return !i.rule.empty() && i.decided == static_cast<std::uint8_t>(step_kind::ignore);
}

/// What is said where the file gives no reason.
std::string_view words_for(step_kind s);

}  // namespace banyan::fault
