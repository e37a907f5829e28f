// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::doctor {
namespace {

constexpr std::uint64_t least_limit = 64u << 20;
constexpr const char* rule_of_thumb =
    "in banyan.conf: six times the state of the node's ranks, three times where jobs have one node "
    "(docs/install.md, Memory)";

}  // namespace

std::optional<finding> judge_limits(std::uint64_t limit, std::uint64_t of_job) {
    const bool job_alone = limit >= least_limit;
    if (job_alone && (of_job == 0 || of_job >= least_limit)) return {};
    const char* const key = job_alone ? "job_memory_limit" : "memory_limit";
    return finding{
        verdict::wrong, "memory",
        fmt::format("[ckptd] {} is {}: no training fits", key, format_bytes(job_alone ? of_job : limit)),
        "no job has checkpoints on this node", fmt::format("{} {}", key, rule_of_thumb)};
}

finding judge_memory(const memory_of_node& m) {
    const char* const why = "the kernel ends processes, perhaps the checkpoint daemon with all that it holds";
    const auto limit = format_bytes(m.ckptd_limit), total = format_bytes(m.total);
    if (m.ckptd_limit >= m.total)
        return {verdict::wrong, "memory",
                fmt::format("[ckptd] memory_limit is {}, and the node has {}", limit, total), why,
                fmt::format("memory_limit {}", rule_of_thumb)};
    const auto jobs = m.for_slurm - std::min(m.for_slurm, m.kept_from_jobs);
    const auto fix = fmt::format(
        "MemSpecLimit={} on the node's line of slurm.conf, with SelectTypeParameters=CR_Core_Memory; or a "
        "smaller memory_limit",
        ((m.ckptd_limit >> 20) + 1024));
    if (!m.jobs_are_limited)
        return {verdict::note, "memory",
                fmt::format("jobs are not limited in memory; checkpoints may take {} of {}", limit, total),
                "where jobs take what the checkpoints need, " + std::string(why), fix};
    if (jobs + m.ckptd_limit > m.total)
        return {verdict::wrong, "memory",
                fmt::format("jobs may take {} and checkpoints {}, and the node has {}", format_bytes(jobs),
                            limit, total),
                why, fix};
    return fine("memory",
                fmt::format("{} for jobs and {} for checkpoints, of {}", format_bytes(jobs), limit, total));
}

std::optional<std::uint64_t> memory_total(std::string_view meminfo) {
    constexpr std::string_view key = "MemTotal:";
    for (const auto line : split(meminfo, '\n')) {
        if (!line.starts_with(key)) continue;
        const auto words = trim(line.substr(key.size()));
        const auto kib = parse_number(words.substr(0, words.find(' ')), UINT64_MAX >> 10);
        if (kib) return *kib << 10;
    }
    return {};
}

}  // namespace banyan::doctor
