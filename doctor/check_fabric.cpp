// SPDX-License-Identifier: BSD-3-Clause
//
// The snapshot of the fabric, and the log of its subnet manager.
#include <algorithm>
#include <ctime>
#include <unordered_set>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>

#include "common/command.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "doctor/access.hpp"
#include "doctor/opensm.hpp"
#include "doctor/site.hpp"

namespace banyan::doctor {
namespace {

constexpr const char* make_one = "ibnetdiscover | banyan-topo snapshot - -o";

std::string hours(std::chrono::seconds age) {
    return age < std::chrono::hours(48) ? fmt::format("{} h", age.count() / 3600)
                                        : fmt::format("{} days", age.count() / 86400);
}

/// The user that slurmctld runs under: "slurm(64030)".
std::string slurm_user(const slurm_config& config) {
    const auto value = value_of(config, "SlurmUser");
    return value.substr(0, value.find('('));
}

/// Ports of this host that are InfiniBand's; the controller looks at the fabric through one.
bool has_infiniband() {
    std::error_code failed;
    const std::filesystem::path cards = "/sys/class/infiniband";
    for (const auto& card : std::filesystem::directory_iterator(cards, failed))
        for (const auto& port : std::filesystem::directory_iterator(card.path() / "ports", failed))
            if (const auto layer = read_file(port.path() / "link_layer", 64);
                layer && trim(*layer) == "InfiniBand")
                return true;
    return false;
}

void judge_nodes(const topo::fabric& fabric, const std::vector<slurm_node>& nodes, findings& out) {
    std::unordered_set<std::string_view> hosts;
    for (const auto& host : fabric.hosts) hosts.insert(host.name);
    std::vector<std::string> missing;
    for (const auto& node : nodes)
        if (!hosts.contains(node.name)) missing.push_back(node.name);
    const auto found = nodes.size() - missing.size();
    const auto what = fmt::format("{} of the {} nodes of slurm.conf are on the fabric ({} hosts)", found,
                                  nodes.size(), fabric.hosts.size());
    if (missing.empty()) return out.push_back(fine("fabric snapshot", what));
    const auto names = missing.size() <= 256
                           ? compress_hostlist(missing)
                           : fmt::format("{} and {} more", missing.front(), missing.size() - 1);
    // Nodes that have no InfiniBand it lacks rightly; those that have are all lacked only by other names.
    const std::string compare =
        "banyan-topo show SNAPSHOT, and compare the names; where they differ, see --names in banyan-topo(1)";
    out.push_back({found == 0 ? verdict::wrong : verdict::note, "fabric snapshot",
                   what + "; it lacks " + names,
                   "a training job with one of the nodes that it lacks has its ranks in Slurm's order",
                   found == 0 ? compare : "nothing, where these have no InfiniBand; else " + compare});
}

}  // namespace

findings check_snapshot(const site& s) {
    if (!s.is.controller && !s.is.fabric) return {};
    if (!s.fault) return {};  // check_configuration has said so
    const std::filesystem::path path = s.fault->snapshot;
    const char* const effect =
        "new jobs run where Slurm alone has them, with their ranks in its order (checkpoints and spares "
        "work), "
        "and faults of switches are not matched to nodes";
    const auto fix = fmt::format("{} {}", make_one, path.string());
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) {
        const int why = errno;
        if (why == ENOENT && !s.is.fabric && !has_infiniband())
            return {
                {verdict::note, path.string(), "is not there, and this host has no InfiniBand", effect,
                 "nothing, where the nodes have none; else banyan-snapshot.timer on a host of the fabric"}};
        return {{why == ENOENT ? verdict::wrong : verdict::unknown, path.string(),
                 std::generic_category().message(why), effect, fix}};
    }
    const auto loaded = topo::load_snapshot(path);
    if (!loaded) return {{verdict::wrong, path.string(), loaded.error().text(), effect, fix}};
    findings out;
    const auto age = std::chrono::seconds(std::max<std::int64_t>(0, std::time(nullptr) - st.st_mtim.tv_sec));
    if (s.max_age && s.max_age->count() > 0 && age > *s.max_age)
        out.push_back({verdict::wrong, path.string(), fmt::format("is {} old, more than max_age", hours(age)),
                       effect, fix + "; a timer does it: systemctl enable --now banyan-snapshot.timer"});
    else
        out.push_back(fine(path.string(), fmt::format("is {} old", hours(age))));
    if (s.slurm.config && s.is.controller)
        if (const auto user = slurm_user(*s.slurm.config); !user.empty())
            if (const auto obstacle = cannot_read(path, user); !obstacle.empty())
                out.push_back({verdict::wrong, path.string(),
                               fmt::format("SlurmUser {} cannot read it: {}", user, obstacle), effect,
                               fmt::format("chmod o+rx {0}; chmod o+r {1}", path.parent_path().string(),
                                           path.string())});
    if (s.slurm.nodes)
        judge_nodes(*loaded, *s.slurm.nodes, out);
    else
        out.push_back({verdict::unknown, "fabric snapshot", s.slurm.nodes.error().text(),
                       "whether slurm.conf's nodes are on the fabric is not known", "scontrol show node"});
    return out;
}

findings check_opensm(const site& s) {
    if (!s.fault || (!s.is.fabric && s.fault->opensm_log.empty())) return {};
    const auto& log = s.fault->opensm_log;
    if (log.empty())
        return {{verdict::note, "opensm", "runs here, and [fault] opensm_log is empty",
                 "broken links and switches are not seen",
                 "opensm_log = \"/var/log/opensm.log\" in banyan.conf, where faultd's controller runs"}};
    if (!s.is.fabric && !s.is.controller) return {};
    findings out;
    struct stat st {};
    if (::stat(log.c_str(), &st) != 0)
        out.push_back({verdict::wrong, log, std::generic_category().message(errno),
                       "broken links and switches are not seen",
                       "run faultd's controller on the host of opensm, or have the log there by syslog or a "
                       "shared file system"});
    else
        out.push_back(
            fine(log, fmt::format("is there, {}", format_bytes(static_cast<std::uint64_t>(st.st_size)))));
    const auto manager = opensm_that_logs_to(log);
    if (!manager)
        out.push_back(
            {verdict::unknown, "opensm", manager.error().text(), "its log may come late", "opensm -d2"});
    if (!manager || !*manager) return out;
    const auto& settings = **manager;
    if (settings.flushes)
        out.push_back(fine("opensm", "writes its log at once"));
    else
        out.push_back({verdict::wrong, "opensm", "keeps lines of its log back until a buffer is full",
                       "a broken link is told minutes late, or when the next one breaks",
                       "force_log_flush TRUE in opensm.conf (or start it with -d2), then restart opensm"});
    if (!settings.log.empty() && settings.log != log)
        out.push_back({verdict::wrong, "opensm",
                       fmt::format("logs to {}, and [fault] opensm_log is {}", settings.log, log),
                       "the fault daemon reads another file",
                       fmt::format("opensm_log = \"{}\" in banyan.conf", settings.log)});
    return out;
}

}  // namespace banyan::doctor
