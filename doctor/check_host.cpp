// SPDX-License-Identifier: BSD-3-Clause
//
// munge, the folders and the memory of this host.
#include <algorithm>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/command.hpp"
#include "common/file.hpp"
#include "common/munge.hpp"
#include "common/text.hpp"
#include "doctor/memory.hpp"
#include "doctor/site.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_meminfo = 1u << 20;

/// A folder of root's in which nobody else can put or change files.
finding judge_folder(const std::filesystem::path& folder, const char* why) {
    struct stat st {};
    const auto fix = fmt::format("install -d -m 755 {}", folder.string());
    if (::stat(folder.c_str(), &st) != 0)
        return {errno == ENOENT ? verdict::wrong : verdict::unknown, folder.string(),
                std::generic_category().message(errno), why, fix};
    if (!S_ISDIR(st.st_mode)) return {verdict::wrong, folder.string(), "is no folder", why, fix};
    const bool sticky = st.st_mode & S_ISVTX;
    if (st.st_uid != 0 || ((st.st_mode & 022) && !sticky))
        return {verdict::wrong, folder.string(),
                fmt::format("owner {}, mode {:04o}: others than root can replace what is in it", st.st_uid,
                            st.st_mode & 07777),
                "root's daemons do not trust it",
                fmt::format("chown root {0}; chmod go-w {0}", folder.string())};
    return fine(folder.string(), fmt::format("is root's, mode {:04o}", st.st_mode & 07777));
}

std::filesystem::path folder_of(const std::string& file) { return std::filesystem::path(file).parent_path(); }

}  // namespace

findings check_munge(const site& s) {
    const auto socket = s.fault ? s.fault->munge_socket : std::string();
    const char* const why = "no daemon of banyan and no command of Slurm can say who it is";
    const auto credential = munge::encode(socket, "banyan-doctor");
    if (!credential)
        return {{verdict::wrong, "munge", credential.error().text(), why, "systemctl status munge"}};
    const auto decoded = munge::decode(socket, *credential);
    if (!decoded) return {{verdict::wrong, "munge", decoded.error().text(), why, "systemctl status munge"}};
    if (decoded->uid != ::geteuid())
        return {{verdict::wrong, "munge",
                 fmt::format("says that we are uid {}, not {}", decoded->uid, ::geteuid()), why,
                 "restart munged"}};
    return {fine("munge", "encodes and decodes on this host")};
}

findings check_directories(const site& s) {
    findings out;
    if (s.is.controller && s.fault) {
        out.push_back(judge_folder(folder_of(s.fault->snapshot), "the fabric's snapshot has no place"));
        if (folder_of(s.fault->history) != folder_of(s.fault->snapshot))
            out.push_back(judge_folder(folder_of(s.fault->history),
                                       "banyan-faultd's controller cannot keep its incidents"));
    }
    if (s.is.compute && s.ckptd)
        out.push_back(judge_folder(folder_of(s.ckptd->socket), "ranks do not find their checkpoint daemon"));
    return out;
}

findings check_memory(const site& s) {
    if (!s.is.compute || !s.ckptd) return {};
    if (auto small = judge_limits(s.ckptd->memory_limit, s.ckptd->job_memory_limit)) return {*small};
    const auto text = read_file("/proc/meminfo", most_meminfo);
    const auto total = text ? memory_total(*text) : std::nullopt;
    if (!total)
        return {{verdict::unknown, "memory", "/proc/meminfo cannot be read",
                 "whether checkpoints fit is not known", ""}};
    if (!s.slurm.nodes)
        return {{verdict::unknown, "memory", s.slurm.nodes.error().text(),
                 "what Slurm gives to jobs is not known", "scontrol show node"}};
    const auto node = std::find_if(s.slurm.nodes->begin(), s.slurm.nodes->end(),
                                   [&](const slurm_node& n) { return n.name == s.node; });
    if (node == s.slurm.nodes->end())
        return {{verdict::unknown, "memory", fmt::format("slurm.conf has no node {}", s.node),
                 "what Slurm gives to jobs is not known", "banyan-doctor --node NAME"}};
    // Slurm prints it in capitals, slurm.conf has it in any.
    const bool counted =
        s.slurm.config &&
        lower_case(value_of(*s.slurm.config, "SelectTypeParameters")).find("memory") != std::string::npos;
    return {judge_memory(
        {*total, node->real_memory << 20, node->mem_spec_limit << 20, s.ckptd->memory_limit, counted})};
}

}  // namespace banyan::doctor
