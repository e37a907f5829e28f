// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/rule.hpp"

#include <algorithm>
#include <array>

namespace banyan::fault {
namespace {

constexpr std::array<std::string_view, 11> actions{"ignore",  "log",   "notify-user", "alert",
                                                   "seal",    "avoid", "sweep",       "restart-step",
                                                   "requeue", "drain", "down"};
constexpr std::array<std::string_view, 6> line_kinds{"xid", "sxid", "symptom", "fabric", "silence", "stuck"};
constexpr std::array<std::string_view, 4> severity_names{"notice", "warning", "error", "fatal"};
constexpr std::array<std::string_view, 6> class_names{"secondary", "harmless", "job",
                                                      "inspect",   "reset",    "restart"};
constexpr std::array<std::string_view, 9> part_names{"gpu",  "hca",         "pcie",   "memory", "cpu",
                                                     "disk", "file-system", "kernel", "job"};
constexpr std::array<std::string_view, 6> culprits{"gpu", "hca", "link", "switch", "node", "manager"};
constexpr std::array<std::string_view, 3> sweep_verdicts{"fit", "unfit", "unknown"};
constexpr std::array<std::string_view, 30> known_reasons{
    "checkpoint-damaged", "disk",       "fabric-errors", "fabric-link", "fabric-switch", "file-system",
    "gpu-alert",          "gpu-app",    "gpu-note",      "gpu-nvlink",  "gpu-reboot",    "gpu-reset",
    "gpu-unknown",        "gpu-xid-79", "hca-alert",     "hca-health",  "host-link",     "host-lost",
    "job-failed",         "job-memory", "job-nccl",      "kernel",      "link-slow",     "memory",
    "node-silent",        "node-stuck", "nvlink-domain", "nvswitch",    "pcie",          "subnet-manager"};

template <class T>
bool has(const std::vector<T>& wanted, const T& value) {
    return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
}

bool has(const std::vector<number_range>& wanted, const std::optional<std::uint32_t>& value) {
    return wanted.empty() || (value && std::ranges::any_of(wanted, [&](const number_range& r) {
                                  return r.first <= *value && *value <= r.last;
                              }));
}

bool has_part(const std::vector<catalog::part>& wanted, const std::string& symptom) {
    if (wanted.empty()) return true;
    const auto rows = catalog::symptoms();
    const auto row = std::ranges::find(rows, symptom, &catalog::symptom_row::name);
    return row != rows.end() && has(wanted, row->part);
}

}  // namespace

line_kind kind_of(const incident& i) {
    if (is_an_nvlink_domain(i)) return line_kind::sxid;
    if (!i.object.device.empty()) return line_kind::symptom;
    switch (i.object.kind) {
        case object_kind::gpu:
            return line_kind::xid;
        case object_kind::sw:
            return i.reason == "nvswitch" ? line_kind::sxid : line_kind::fabric;
        case object_kind::node:
            return i.reason == silent_reason  ? line_kind::silence
                   : i.reason == stuck_reason ? line_kind::stuck
                                              : line_kind::fabric;
        default:
            return line_kind::fabric;
    }
}

bool criteria::match(const incident& i) const {
    return has(classes, static_cast<precedence>(i.root_precedence)) && has(kinds, kind_of(i)) &&
           has(objects, i.object.kind) && has(severities, i.severity) && has(reasons, i.reason) &&
           has(xids, i.xid) && has(sxids, i.sxid) && has(symptoms, i.symptom) && has(swept, i.swept) &&
           has_part(parts, i.symptom);
}

std::span<const std::string_view> action_words() { return actions; }
std::span<const std::string_view> kind_words() { return line_kinds; }
std::span<const std::string_view> severity_words() { return severity_names; }
std::span<const std::string_view> class_words() { return class_names; }
std::span<const std::string_view> part_words() { return part_names; }
std::span<const std::string_view> object_words() { return culprits; }
std::span<const std::string_view> swept_words() { return sweep_verdicts; }
std::span<const std::string_view> reason_words() { return known_reasons; }

std::vector<std::string_view> symptom_words() {
    std::vector<std::string_view> out;
    for (const auto& row : catalog::symptoms()) out.push_back(row.name);
    return out;
}

std::string_view words_for(step_kind s) {
    switch (s) {
        case step_kind::ignore:
            return "nobody needs to hear of it";
        case step_kind::tell:
            return "the user of the job is told; the node is left alone";
        case step_kind::none:
            return "nothing to do";
        case step_kind::alert:
            return "a person should look";
        case step_kind::seal:
            return "checkpoints of the node's jobs are sealed; the node stays";
        case step_kind::avoid:
            return "jobs that start from now on are kept off the cable; no node is taken out";
        case step_kind::sweep:
            return "the node's agent is asked for a sweep";
        case step_kind::restart:
            return "the job's training step is started again on its nodes; no node is taken out";
        case step_kind::requeue:
            return "the job goes back into the queue, and starts from there; no node is taken out";
        case step_kind::drain:
            return "the node takes no new work, and jobs that can go on elsewhere leave it";
        case step_kind::node_out:
            return "the node is taken out now";
    }
    return {};
}

}  // namespace banyan::fault
