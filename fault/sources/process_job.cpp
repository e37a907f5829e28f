// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/process_job.hpp"

#include <string>

#include <sys/stat.h>

#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t most_cgroup_bytes = 64 * 1024;

std::optional<std::uint32_t> number_behind(std::string_view part, std::string_view prefix) {
    if (!part.starts_with(prefix)) return {};
    const auto n = parse_number(part.substr(prefix.size()), UINT32_MAX);
    return n && *n != 0 ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}

// A user makes groups of his own below his session's, and below his job's: what slurmstepd made stands above.
std::optional<std::uint32_t> job_in_path(std::string_view path) {
    const auto parts = split(path, '/');
    for (std::size_t n = 0; n + 1 < parts.size(); ++n) {
        const std::string_view part = parts[n];
        if (part == "user.slice") return {};
        if (part.ends_with("slurmstepd.scope")) return number_behind(parts[n + 1], "job_");
        const bool root = part == "slurm" || part.starts_with("slurm_");
        if (root && parts[n + 1].starts_with("uid_") && n + 2 < parts.size())
            return number_behind(parts[n + 2], "job_");
    }
    return {};
}

}  // namespace

std::optional<std::uint32_t> job_in_cgroup(std::string_view text) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        // "4:memory:/slurm/uid_1000/job_42/step_0", "0::/system.slice/..."
        const auto first = line.find(':');
        const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        if (const auto job = job_in_path(line.substr(second + 1))) return job;
    }
    return {};
}

std::optional<process_job> job_of_process(const std::filesystem::path& root, std::uint32_t pid) {
    if (pid == 0) return {};
    for (const auto& base : {root, std::filesystem::path("/")}) {
        const auto folder = base / "proc" / std::to_string(pid);
        struct stat s {};
        if (::stat(folder.c_str(), &s) != 0) continue;
        const auto text = read_file(folder / "cgroup", most_cgroup_bytes);
        const auto job = text ? job_in_cgroup(*text) : std::nullopt;
        if (!job) return {};
        return process_job{*job, s.st_uid};
    }
    return {};
}

}  // namespace banyan::fault
