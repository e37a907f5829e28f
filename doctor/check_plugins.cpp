// SPDX-License-Identifier: BSD-3-Clause
//
// The three objects that Slurm loads: files of this host, judged by the Slurm of this host.
#include "doctor/check_plugins.hpp"

#include <fmt/format.h>

#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {

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
    const bool every_program = !runs || *runs < 0x190500;
    const auto& own = s.slurm.file ? s.slurm.file->config : *s.slurm.config;
    const bool named_here = value_of(own, "SelectType") == "select/cons_tres_banyan" || s.is.compute;
    const bool none = is_without_select(*s.slurm.config);
    if (!none && (s.is.controller || (every_program && named_here)))
        out.push_back(judge_plugin(s, "select_cons_tres_banyan.so", micro,
                                   "programs of Slurm end when they cannot load the SelectType"));
    if (!none && s.is.controller)
        out.push_back(judge_plugin(s, "job_submit_banyan.so", micro,
                                   "slurmctld does not start without a plugin that it is told to load"));
    if (s.is.compute || s.is.login || s.is.controller) judge_spank(s, out);
    return out;
}

}  // namespace banyan::doctor
