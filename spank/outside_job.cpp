// SPDX-License-Identifier: BSD-3-Clause
#include "spank/outside_job.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/job_group.hpp"

namespace banyan::spank {
namespace {

/// Where in a line the job's group begins, with its '/'.
std::size_t job_group_in(std::string_view line) {
    const auto step = line.find("/step_");
    const auto begin = step == line.npos ? step : line.rfind('/', step - 1);
    const bool named =
        begin != line.npos && begin < step && is_sluid(line.substr(begin + 1, step - begin - 1));
    return std::min(named ? begin : line.npos, line.find("/job_"));
}

}  // namespace

std::vector<std::string> cgroups_outside_job(std::string_view self) {
    // "4:memory:/slurm/uid_0/job_7/step_0", or "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm".
    std::vector<std::string> out;
    while (!self.empty()) {
        const auto line = self.substr(0, self.find('\n'));
        self.remove_prefix(std::min(line.size() + 1, self.size()));
        const auto controllers = line.find(':'), path = line.find(":/");
        const auto job = job_group_in(line);
        if (path == line.npos || path <= controllers || job == line.npos || job < path) continue;
        const auto user = line.find("/uid_");
        const auto slurm = line.substr(path + 1, std::min(job, user) - path - 1);
        if (path == controllers + 1)  // no controllers: version 2, where Slurm keeps what is no job's beside
            out.push_back(fmt::format("/sys/fs/cgroup{}/system/cgroup.procs", slurm));
        else
            out.push_back(fmt::format("/sys/fs/cgroup/{}{}/cgroup.procs",
                                      line.substr(controllers + 1, path - controllers - 1), slurm));
    }
    return out;
}

}  // namespace banyan::spank
