// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/process_job.hpp"

#include <string>

#include <sys/stat.h>

#include "common/file.hpp"
#include "common/job_group.hpp"
#include "common/text.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t most_cgroup_bytes = 64 * 1024;

std::optional<job_group> numbered(std::string_view part) {
    constexpr std::string_view prefix = "job_";
    if (!part.starts_with(prefix)) return {};
    const auto n = parse_number(part.substr(prefix.size()), UINT32_MAX);
    return n && *n != 0 ? std::optional(job_group{static_cast<std::uint32_t>(*n), {}}) : std::nullopt;
}

std::string_view up_to_end_of(std::string_view path, std::string_view part) {
    return path.substr(0, static_cast<std::size_t>(part.data() + part.size() - path.data()));
}

// A user makes groups of his own below his session's, and below his job's: what slurmstepd made stands above.
std::optional<job_group> job_in_path(std::string_view path) {
    const auto parts = split(path, '/');
    for (std::size_t n = 0; n + 1 < parts.size(); ++n) {
        const std::string_view part = parts[n];
        if (part == "user.slice") return {};
        if (part.ends_with("slurmstepd.scope")) {
            if (is_sluid(parts[n + 1]) && n + 2 < parts.size() && parts[n + 2].starts_with("step_"))
                return job_group{0, up_to_end_of(path, parts[n + 2])};
            return numbered(parts[n + 1]);
        }
        const bool root = part == "slurm" || part.starts_with("slurm_");
        if (root && parts[n + 1].starts_with("uid_") && n + 2 < parts.size()) return numbered(parts[n + 2]);
    }
    return {};
}

/// "slurmstepd: [42.0]" is how a slurmstepd calls itself. A user's process may do so as well.
std::optional<std::uint32_t> job_of_slurmstepd(const std::filesystem::path& base, std::string_view pid) {
    const auto folder = base / "proc" / pid;
    struct stat s {};
    if (::stat(folder.c_str(), &s) != 0 || s.st_uid != 0) return {};
    const auto text = read_file(folder / "cmdline", most_cgroup_bytes);
    constexpr std::string_view head = "slurmstepd: [";
    if (!text || !text->starts_with(head)) return {};
    const auto number = std::string_view(*text).substr(head.size());
    const auto n = parse_number(number.substr(0, number.find('.')), UINT32_MAX);
    return n && *n != 0 ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
}

/// Beside the user's processes a step's group has one of slurmstepd, where no user's process gets.
std::optional<std::uint32_t> job_of_step(const std::filesystem::path& base, std::string_view step) {
    const auto file = base / "sys/fs/cgroup" / step.substr(1) / "slurm/cgroup.procs";
    const auto text = read_file(file, most_cgroup_bytes);
    if (!text) return {};
    for (const auto pid : split(*text, '\n'))
        if (parse_number(pid, INT32_MAX))
            if (const auto job = job_of_slurmstepd(base, pid)) return job;
    return {};
}

}  // namespace

std::optional<job_group> job_in_cgroup(std::string_view text) {
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
        const auto group = text ? job_in_cgroup(*text) : std::nullopt;
        if (!group) return {};
        const auto job = group->job != 0 ? std::optional(group->job) : job_of_step(base, group->step);
        if (!job) return {};
        return process_job{*job, s.st_uid};
    }
    return {};
}

}  // namespace banyan::fault
