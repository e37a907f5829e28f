// SPDX-License-Identifier: BSD-3-Clause
//
// plugstack.conf, and the SPANK plugin that it is to load. Whoever submits needs it, and whoever runs a step.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <fmt/format.h>
#include <sys/stat.h>

#include "common/command.hpp"
#include "common/config.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "doctor/access.hpp"
#include "doctor/check_configuration.hpp"
#include "doctor/check_plugins.hpp"
#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_conf = 1u << 20;
constexpr const char* line_to_write = "optional spank_banyan.so config=/etc/banyan/banyan.conf";
constexpr const char* plugstack_why = "--train options are unknown on this host";
constexpr const char* for_configless =
    "on slurmctld's host write the line \"optional spank_banyan.so config=/etc/banyan/banyan.conf\" into "
    "plugstack.conf beside slurm.conf (a file that it includes does not reach the nodes), then scontrol "
    "reconfigure";

/// The plugstack.conf that commands of this host read. slurmctld tells where its own is: a node that gets its
/// configuration from it has a copy beside its slurm.conf.
std::filesystem::path plugstack_here(const site& s) {
    return value_of(s.slurm.file ? s.slurm.file->config : *s.slurm.config, "PlugStackConfig");
}

/// A copy of what slurmctld gives out, which the next reconfigure writes anew.
bool is_copy(const std::filesystem::path& file) {
    const auto text = file.string();
    return text.starts_with("/run/slurm/conf/") || text.find("/conf-cache/") != std::string::npos;
}

std::string fix_of(const std::filesystem::path& plugstack) {
    return is_copy(plugstack)
               ? for_configless
               : fmt::format("write the line \"{}\" into {}", line_to_write, plugstack.string());
}

/// What a host without any file of Slurm's loads, only Slurm can say.
finding ask_for_options() {
    const auto help = run_command({"srun", "--help"}, std::chrono::seconds(20));
    if (!help) return {verdict::unknown, "srun --help", help.error().text(), plugstack_why, "srun --help"};
    if (help->find("--train-parallel") == std::string::npos)
        return {verdict::wrong, "srun --help", "has no --train options", plugstack_why, for_configless};
    return fine("srun --help", "has the --train options");
}

void judge_config(const std::filesystem::path& plugstack, const plugstack_line& line, const site& s,
                  findings& out) {
    const std::filesystem::path config = line.arguments.config;
    if (config.empty()) return;
    // What is wrong with the one that this looked at anyhow, check_configuration says.
    if (config == s.config_path) return;
    // Not whether that file is there: those beside it do.
    if (const auto loaded = config_file::load(config); !loaded) {
        auto found = unusable(config, loaded.error());
        found.subject = plugstack.string();
        found.what = "config=: " + found.what;
        if (config != packaged_config && loaded.error().code == errc::not_found)
            found.fix = fmt::format("config={} in that line of {}, or write {}", packaged_config,
                                    line.file.string(), config.string());
        out.push_back(std::move(found));
        return;
    }
    std::ranges::copy(judge_hidden(parts_of_config(config), hidden_config_effect), std::back_inserter(out));
    if (!s.config_path.empty())
        out.push_back(
            {verdict::note, plugstack.string(),
             fmt::format("config={}, and this looked at {}", config.string(), s.config_path.string()),
             "jobs and daemons may go by two files", "banyan-doctor --config " + config.string()});
}

/// The checkpoint daemon that a prolog starts where no service runs it, judged as the plugin does.
void judge_daemon(const plugstack_line& line, const site& s, findings& out) {
    if (!s.is.compute) return;
    const auto program = line.arguments.program();
    const char* const why = "no job gets checkpoints on this node, unless a service runs banyan-ckptd";
    struct stat st {};
    if (::stat(program.c_str(), &st) != 0) {
        const char* const install = "install the package banyan-ckptd on this node";
        const auto fix =
            line.arguments.ckptd.empty()
                ? std::string(install)
                : fmt::format("take ckptd= out of that line of {}, and {}", line.file.string(), install);
        out.push_back({verdict::wrong, program,
                       fmt::format("{}, and a job's prolog has to start it{}", std::strerror(errno),
                                   line.arguments.ckptd.empty() ? "" : " (ckptd= in plugstack.conf)"),
                       why, fix});
    } else if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR)) {
        out.push_back({verdict::wrong, program, fmt::format("is no program, mode {:04o}", st.st_mode & 07777),
                       why, "install the package banyan-ckptd again, or chmod 755 " + program});
    } else if (const auto trusted = check_trusted(program); !trusted) {
        out.push_back({verdict::wrong, program, "the SPANK plugin does not start it: " + trusted.error().what,
                       why, trusted.error().hint});
    }
}

void judge_line(const std::filesystem::path& plugstack, const plugstack_line& line, const site& s,
                findings& out) {
    const bool gives_out =
        s.is.controller && has_word(*s.slurm.config, "SlurmctldParameters", "enable_configless");
    if (line.required)
        out.push_back({verdict::wrong, line.file.string(), "loads spank_banyan.so as required",
                       "a node where it does not load runs no job at all, of anybody",
                       "write optional instead of required in that line"});
    else if (gives_out && line.file != plugstack)
        out.push_back({verdict::wrong, plugstack.string(),
                       fmt::format("includes {}, and nodes without a slurm.conf of their own do not get that",
                                   line.file.string()),
                       "there training programs are not started", for_configless});
    else
        out.push_back(fine(plugstack.string(), "loads spank_banyan.so"));
    for (const auto& word : line.arguments.ignored)
        out.push_back(
            {verdict::wrong, line.file.string(),
             fmt::format("{} behind spank_banyan.so is ignored: the plugin has no such argument", word),
             "the plugin goes by its defaults", plugstack_hint(word)});
    judge_config(plugstack, line, s, out);
    judge_daemon(line, s, out);
}

/// Slurm reads one plugstack.conf: what stands in another beside slurm.conf is lost to the site.
void judge_other(const std::filesystem::path& plugstack, const site& s, findings& out) {
    if (!s.slurm.file) return;
    const auto beside = s.slurm.file->path.parent_path() / "plugstack.conf";
    std::error_code ignored;
    if (beside == plugstack || std::filesystem::equivalent(beside, plugstack, ignored)) return;
    const auto lost = read_file(beside, most_conf), read = read_file(plugstack, most_conf);
    if (!lost || (read && read->find(beside.string()) != std::string::npos)) return;
    bool says_something = false;
    for (const auto line : split(*lost, '\n'))
        says_something = says_something || (!trim(line).empty() && !trim(line).starts_with('#'));
    if (says_something)
        out.push_back(
            {verdict::wrong, beside.string(),
             fmt::format("is not read, since PlugStackConfig={}", plugstack.string()),
             "the SPANK plugins and options that it names are gone",
             fmt::format("take PlugStackConfig out of slurm.conf and have the line for banyan in {}",
                         beside.string())});
}

}  // namespace

void judge_spank(const site& s, findings& out) {
    const char* const why = "no --train option, no checkpoints and no rank environment";
    const auto plugstack = plugstack_here(s);
    std::error_code ignored;
    if (!s.slurm.file && !std::filesystem::exists(plugstack, ignored)) {
        out.push_back(judge_plugin(s, "spank_banyan.so", minor, why));
        out.push_back(ask_for_options());
        return;
    }
    judge_other(plugstack, s, out);
    std::ranges::copy(judge_hidden(parts_of_plugstack(plugstack),
                                   "every srun, sbatch and salloc of a user ends with an error"),
                      std::back_inserter(out));
    const auto line = find_in_plugstack(plugstack);
    if (line && *line && std::filesystem::path((*line)->plugin).is_absolute()) {
        const std::filesystem::path file = (*line)->plugin;
        if (std::filesystem::exists(file, ignored))
            out.push_back(judge_object(file, release_here(s), minor, why));
        else
            out.push_back({verdict::wrong, file.string(), "is not there, and plugstack.conf names it", why,
                           fix_of(plugstack)});
    } else {
        out.push_back(judge_plugin(s, "spank_banyan.so", minor, why));
    }
    if (!line)
        out.push_back({line.error().code == errc::denied ? verdict::unknown : verdict::wrong,
                       plugstack.string(), line.error().text(), plugstack_why, fix_of(plugstack)});
    else if (!*line)
        out.push_back({verdict::wrong, plugstack.string(), "has no line for spank_banyan.so", plugstack_why,
                       fix_of(plugstack)});
    else
        judge_line(plugstack, **line, s, out);
}

}  // namespace banyan::doctor
