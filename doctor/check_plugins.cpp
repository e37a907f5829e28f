// SPDX-License-Identifier: BSD-3-Clause
//
// The three objects that Slurm loads, and plugstack.conf: files of this host, judged by the Slurm of this
// host.
#include <fmt/format.h>

#include "common/command.hpp"
#include "common/file.hpp"
#include "doctor/site.hpp"
#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {
namespace {

constexpr std::uint32_t micro = 0xffffff, minor = 0xffff00;
constexpr const char* plugstack_mend = "optional spank_banyan.so config=/etc/banyan/banyan.conf";
constexpr const char* plugstack_why = "--train options are unknown on this host";

/// The release of Slurm that loads plugins here: this host's own, which need not be slurmctld's.
std::optional<std::uint32_t> release_here(const site& s) {
    if (s.slurm.installed) return s.slurm.installed;
    return parse_version(value_of(*s.slurm.config, "SLURM_VERSION"));
}

finding judge_object(const std::filesystem::path& file, std::optional<std::uint32_t> runs, std::uint32_t mask,
                     const char* why) {
    const auto built_for = plugin_version(file);
    if (!built_for)
        return {verdict::unknown, file.string(), built_for.error().text(), why,
                "install the package banyan-slurm-plugins again"};
    if (!runs)
        return {verdict::unknown, file.string(),
                fmt::format("is built for Slurm {}, and which release is here is not known",
                            version_text(*built_for)),
                why, "scontrol --version"};
    if ((*built_for & mask) != (*runs & mask))
        return {verdict::wrong, file.string(),
                fmt::format("is built for Slurm {}, and {} is here", version_text(*built_for),
                            version_text(*runs)),
                why,
                fmt::format("install the banyan-slurm-plugins of Slurm {0}; until it is there "
                            "SelectType=select/cons_tres, and banyan out of JobSubmitPlugins",
                            version_text(*runs))};
    return fine(file.string(), "is built for Slurm " + version_text(*built_for));
}

finding judge_plugin(const site& s, const std::string& name, std::uint32_t mask, const char* why) {
    const auto file = find_plugin(*s.slurm.config, name);
    if (!file)
        return {verdict::wrong, name,
                "is in no folder of PluginDir=" + value_of(*s.slurm.config, "PluginDir"), why,
                "install the package banyan-slurm-plugins on this host"};
    return judge_object(*file, release_here(s), mask, why);
}

/// The plugstack.conf that commands of this host read. slurmctld tells where its own is: a node that gets its
/// configuration from it has a copy beside its slurm.conf.
std::filesystem::path plugstack_here(const site& s) {
    return value_of(s.slurm.file ? s.slurm.file->config : *s.slurm.config, "PlugStackConfig");
}

/// What a host without any file of Slurm's loads, only Slurm can say.
finding ask_for_options() {
    const auto help = run_command({"srun", "--help"}, std::chrono::seconds(20));
    if (!help) return {verdict::unknown, "srun --help", help.error().text(), plugstack_why, "srun --help"};
    if (help->find("--train-parallel") == std::string::npos)
        return {verdict::wrong, "srun --help", "has no --train options", plugstack_why,
                fmt::format("in the plugstack.conf that slurmctld gives out: {}", plugstack_mend)};
    return fine("srun --help", "has the --train options");
}

void judge_line(const std::filesystem::path& plugstack, const plugstack_line& line, const site& s,
                findings& out) {
    if (line.required)
        out.push_back({verdict::note, plugstack.string(), "loads spank_banyan.so as required",
                       "a node where it does not load runs no job at all, of anybody", plugstack_mend});
    else
        out.push_back(fine(plugstack.string(), "loads spank_banyan.so"));
    if (const auto config = line.arguments.find("config"); config != line.arguments.end()) {
        const auto readable = read_file(config->second, 1u << 20);
        if (!readable)
            out.push_back({verdict::wrong, plugstack.string(), "config=: " + readable.error().text(),
                           "jobs with --train options fail", plugstack_mend});
        else if (!s.config_path.empty() && std::filesystem::path(config->second) != s.config_path)
            out.push_back(
                {verdict::note, plugstack.string(),
                 fmt::format("config={}, and this looked at {}", config->second, s.config_path.string()),
                 "jobs and daemons may go by two files", "banyan-doctor --config " + config->second});
    }
}

void judge_spank(const site& s, findings& out) {
    const char* const why = "no --train option, no checkpoints and no rank environment";
    const auto plugstack = plugstack_here(s);
    std::error_code ignored;
    if (!s.slurm.file && !std::filesystem::exists(plugstack, ignored)) {
        out.push_back(judge_plugin(s, "spank_banyan.so", minor, why));
        out.push_back(ask_for_options());
        return;
    }
    const auto line = find_in_plugstack(plugstack);
    if (line && *line && std::filesystem::path((*line)->plugin).is_absolute()) {
        const std::filesystem::path file = (*line)->plugin;
        if (std::filesystem::exists(file, ignored))
            out.push_back(judge_object(file, release_here(s), minor, why));
        else
            out.push_back({verdict::wrong, file.string(), "is not there, and plugstack.conf names it", why,
                           plugstack_mend});
    } else {
        out.push_back(judge_plugin(s, "spank_banyan.so", minor, why));
    }
    if (!line)
        out.push_back({line.error().code == errc::denied ? verdict::unknown : verdict::wrong,
                       plugstack.string(), line.error().text(), plugstack_why, plugstack_mend});
    else if (!*line)
        out.push_back({verdict::wrong, plugstack.string(), "has no line for spank_banyan.so", plugstack_why,
                       plugstack_mend});
    else
        judge_line(plugstack, **line, s, out);
}

}  // namespace

findings check_plugins(const site& s) {
    if (!s.slurm.config) return {};  // check_slurm has said so
    findings out;
    const auto runs = release_here(s);
    const auto controller = parse_version(value_of(*s.slurm.config, "SLURM_VERSION"));
    if (controller && runs && *controller != *runs)
        out.push_back(
            {verdict::note, "Slurm",
             fmt::format("{} on this host, {} in slurmctld", version_text(*runs), version_text(*controller)),
             "each needs plugins of its own release", "an upgrade that is under way: upgrade.md"});
    // srun, slurmd and slurmstepd of 22.05 to 24.11 load the configured select plugin too; later ones only
    // slurmctld.
    const bool everywhere = !runs || *runs < 0x190500;
    if (s.is.controller || everywhere)
        out.push_back(judge_plugin(s, "select_cons_tres_banyan.so", micro,
                                   "programs of Slurm end when they cannot load the SelectType"));
    if (s.is.controller)
        out.push_back(judge_plugin(s, "job_submit_banyan.so", micro,
                                   "slurmctld does not start without a plugin that it is told to load"));
    if (s.is.compute || s.is.login) judge_spank(s, out);
    return out;
}

}  // namespace banyan::doctor
