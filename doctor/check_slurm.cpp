// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include "doctor/site.hpp"

namespace banyan::doctor {
namespace {

/// One setting of slurm.conf: what it has to be, what happens where it is not, and the line.
struct rule {
    verdict otherwise;
    bool (*holds)(const slurm_config&);
    const char* key;
    const char* why;
    const char* mend;
};

const rule rules[] = {
    {verdict::wrong,
     [](const slurm_config& c) { return value_of(c, "SelectType") == "select/cons_tres_banyan"; },
     "SelectType", "jobs are placed by Slurm alone, without the fabric and without an order of ranks",
     "SelectType=select/cons_tres_banyan, then restart slurmctld, and slurmd on every node"},
    {verdict::wrong, [](const slurm_config& c) { return has_word(c, "JobSubmitPlugins", "banyan"); },
     "JobSubmitPlugins",
     "a wrong --train option is not refused at submission but fails later, without the reason",
     "JobSubmitPlugins=banyan (after those that are there), then scontrol reconfigure"},
    {verdict::wrong,
     [](const slurm_config& c) {
         return has_word(c, "PrologFlags", "Alloc") || has_word(c, "PrologFlags", "Contain");
     },
     "PrologFlags",
     "no node prepares checkpoints before its tasks start, and users' own environments reach the prolog "
     "unchecked",
     "PrologFlags=Alloc (or Contain, which includes it), then scontrol reconfigure"},
    {verdict::wrong, [](const slurm_config& c) { return value_of(c, "AuthType") == "auth/munge"; },
     "AuthType", "plans are sealed, and daemons know each other, by munge", "AuthType=auth/munge"},
    {verdict::wrong,
     [](const slurm_config& c) { return !has_word(c, "SlurmctldParameters", "enable_stepmgr"); },
     "SlurmctldParameters", "a step manager is not told when a node leaves the job: the step never ends",
     "take enable_stepmgr out of SlurmctldParameters"},
    {verdict::note, [](const slurm_config& c) { return value_of(c, "JobRequeue") != "0"; }, "JobRequeue",
     "a job that lost a node and has no spare ends, unless it was submitted with --requeue", "JobRequeue=1"},
    {verdict::note, [](const slurm_config& c) { return value_of(c, "JobSubmitPlugins").ends_with("banyan"); },
     "JobSubmitPlugins", "what a later plugin changes in a job is not checked",
     "put banyan last in JobSubmitPlugins"},
};

}  // namespace

findings check_slurm(const site& s) {
    if (!s.slurm.config)
        return {{verdict::unknown, "slurmctld", s.slurm.config.error().text(),
                 "nothing about slurm.conf can be said without it",
                 "scontrol ping; systemctl status slurmctld"}};
    findings out{fine("slurmctld", "answers, Slurm " + value_of(*s.slurm.config, "SLURM_VERSION"))};
    for (const auto& r : rules) {
        const auto value = value_of(*s.slurm.config, r.key);
        const auto shown = fmt::format("{}={}", r.key, value);
        if (r.holds(*s.slurm.config)) {
            if (r.otherwise == verdict::wrong) out.push_back(fine("slurm.conf", shown));
        } else {
            out.push_back({r.otherwise, "slurm.conf", shown, r.why, r.mend});
        }
    }
    return out;
}

findings check_plugins(const site& s) {
    if (!s.slurm.config) return {};  // check_slurm has said so
    const auto& config = *s.slurm.config;
    const auto running = parse_version(value_of(config, "SLURM_VERSION"));
    findings out;
    const auto look_at = [&](const std::string& name, std::uint32_t mask, const char* what_for) {
        const auto file = find_plugin(config, name);
        if (!file)
            return out.push_back({verdict::wrong, name,
                                  "is in no folder of PluginDir=" + value_of(config, "PluginDir"), what_for,
                                  "install the package banyan-slurm-plugins on this host"});
        const auto built_for = plugin_version(*file);
        if (!built_for)
            return out.push_back({verdict::unknown, file->string(), built_for.error().text(), what_for,
                                  "install the package banyan-slurm-plugins again"});
        if (running && (*built_for & mask) != (*running & mask))
            return out.push_back({verdict::wrong, file->string(),
                                  fmt::format("is built for Slurm {}, and {} runs", version_text(*built_for),
                                              version_text(*running)),
                                  "Slurm loads a plugin of its own release alone",
                                  "install the banyan-slurm-plugins of this release of Slurm"});
        out.push_back(fine(file->string(), "is built for Slurm " + version_text(*built_for)));
    };
    constexpr std::uint32_t micro = 0xffffff, minor = 0xffff00;
    // srun, slurmd and slurmstepd of 22.05 to 24.11 load the configured select plugin too; later ones only
    // slurmctld.
    const bool everywhere = !running || *running < 0x190500;
    if (s.is.controller || everywhere)
        look_at("select_cons_tres_banyan.so", micro,
                "programs of Slurm end when they cannot load the SelectType");
    if (s.is.controller)
        look_at("job_submit_banyan.so", micro,
                "slurmctld does not start without a plugin that it is told to load");
    if (s.is.compute || s.is.login) {
        look_at("spank_banyan.so", minor, "no --train option, no checkpoints and no rank environment");
        const auto plugstack = value_of(config, "PlugStackConfig");
        const auto line = find_in_plugstack(plugstack);
        const char* const mend = "optional spank_banyan.so config=/etc/banyan/banyan.conf";
        if (!line)
            out.push_back({verdict::wrong, plugstack, line.error().text(),
                           "--train options are unknown on this host", mend});
        else if (!*line)
            out.push_back({verdict::wrong, plugstack, "has no line for spank_banyan.so",
                           "--train options are unknown on this host", mend});
        else if ((*line)->required)
            out.push_back({verdict::note, plugstack, "loads spank_banyan.so as required",
                           "a node where it does not load runs no job at all, of anybody", mend});
        else
            out.push_back(fine(plugstack, "loads spank_banyan.so"));
    }
    return out;
}

}  // namespace banyan::doctor
