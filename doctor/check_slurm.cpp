// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include "doctor/site.hpp"
#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {
namespace {

/// One setting of slurm.conf: what it has to be, what happens where it is not, and the line.
struct rule {
    verdict otherwise;
    bool (*holds)(const slurm_config&);
    const char* key;
    const char* why;
    const char* fix;
    bool again = false;  ///< another rule has said that the key is well
};

const rule rules[] = {
    {verdict::wrong,
     [](const slurm_config& c) {
         return value_of(c, "SelectType") == "select/cons_tres_banyan" || is_without_select(c);
     },
     "SelectType", "jobs are placed by Slurm alone, without the fabric and without an order of ranks",
     "SelectType=select/cons_tres_banyan, then restart slurmctld, and slurmd on every node"},
    {verdict::wrong,
     [](const slurm_config& c) { return has_word(c, "JobSubmitPlugins", "banyan") || is_without_select(c); },
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
    {verdict::note, [](const slurm_config& c) { return value_of(c, "JobRequeue") != "0"; }, "JobRequeue",
     "a job that lost a node and has no spare ends, unless it was submitted with --requeue", "JobRequeue=1"},
    {verdict::note, [](const slurm_config& c) { return !has_word(c, "PrologFlags", "RunInJob"); },
     "PrologFlags", "a checkpoint daemon that a prolog starts ends with its job",
     "run it as a service: systemctl enable --now banyan-ckptd@$(hostname -s) on every node"},
    {verdict::wrong,
     [](const slurm_config& c) {
         const auto plugins = lower_case(value_of(c, "JobSubmitPlugins"));
         return plugins.ends_with("banyan") || !has_word(c, "JobSubmitPlugins", "banyan");
     },
     "JobSubmitPlugins", "what a later plugin changes in a job is not checked",
     "put banyan last in JobSubmitPlugins, then scontrol reconfigure", true},
};

/// What is behind a scontrol that does not get through, as far as its own words tell.
finding silent_slurm(const error& why, bool judged_by_file, const site& s) {
    const auto text = why.text();
    const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
    std::string fix = "scontrol ping; systemctl status slurmctld";
    if (says("uthentic") || says("redential") || says("Munge") || says("Zero Bytes"))
        fix =
            "one munge key on all hosts: cksum /etc/munge/munge.key; systemctl status munge; and clocks that "
            "agree";
    else if (says("plugin"))
        fix =
            "install on this host the plugins that slurm.conf names, for the release of its Slurm; scontrol "
            "show "
            "config";
    else if (says("configuration source"))
        fix = "export SLURM_CONF=FILE (for cron, too): slurm.conf is in none of Slurm's own places";
    else if (says("cannot run scontrol"))
        fix = "PATH=/where/slurm/is/bin:$PATH banyan-doctor; in the line for cron, too";
    return {verdict::unknown, "slurmctld", text,
            judged_by_file ? "what follows is judged by " + s.slurm.file->path.string()
                           : "nothing about slurm.conf can be said without it",
            fix};
}

/// A host with a slurm.conf of its own may keep Slurm's own select plugin: its commands need no package then.
void judge_own_select(const site& s, findings& out) {
    if (s.slurm.silence || !s.slurm.file || s.is.controller) return;
    const auto here = value_of(s.slurm.file->config, "SelectType");
    if (here.empty() || here == value_of(*s.slurm.config, "SelectType")) return;
    out.push_back(
        {verdict::note, s.slurm.file->path.string(),
         fmt::format("SelectType={}, and slurmctld's is {}", here, value_of(*s.slurm.config, "SelectType")),
         "commands of Slurm work here, with banyan's packages and without; its tools go by "
         "slurmctld's",
         "the same slurm.conf on all hosts, once banyan-slurm-plugins is installed here"});
}

/// What slurmctld runs with and what this host's file says for its next start.
void judge_restart(const site& s, findings& out) {
    if (s.slurm.silence || !s.slurm.file || !s.is.controller) return;
    const auto now = value_of(*s.slurm.config, "SelectType"),
               next = value_of(s.slurm.file->config, "SelectType");
    if (now.empty() || next.empty() || now == next) return;
    out.push_back({verdict::wrong, s.slurm.file->path.string(),
                   fmt::format("SelectType={}, and slurmctld runs with {}", next, now),
                   "slurmctld reads it when it starts, and at nothing else", "systemctl restart slurmctld"});
}

}  // namespace

findings check_slurm(const site& s) {
    findings out;
    if (s.slurm.file_error)
        out.push_back({verdict::unknown, "slurm.conf", s.slurm.file_error->text(),
                       "commands of Slurm end with it, and daemons when they are started again",
                       "the file, and those that it includes, have to be there"});
    if (!s.slurm.config) {
        out.push_back(silent_slurm(s.slurm.config.error(), false, s));
        return out;
    }
    const auto& config = *s.slurm.config;
    if (s.slurm.silence)
        out.push_back(silent_slurm(*s.slurm.silence, true, s));
    else
        out.push_back(fine("slurmctld", "answers, Slurm " + value_of(config, "SLURM_VERSION")));
    if (!s.slurm.unset_conf.empty())
        out.push_back({verdict::note, "SLURM_CONF",
                       fmt::format("is not set here, and Slurm's daemons run with {}", s.slurm.unset_conf),
                       "commands of Slurm do not find slurmctld in this shell, nor in cron",
                       "export SLURM_CONF=" + s.slurm.unset_conf});
    for (const auto& r : rules) {
        const auto value = value_of(config, r.key);
        auto shown = fmt::format("{}={}", r.key, value);
        if (is_without_select(config) && std::string_view(r.key) == "SelectType")
            shown +=
                ": Slurm chooses the nodes, and srun orders the ranks on them; the fabric is not looked at "
                "(without-select.md)";
        if (r.holds(config)) {
            if (r.otherwise == verdict::wrong && !r.again) out.push_back(fine("slurm.conf", shown));
        } else {
            out.push_back({r.otherwise, "slurm.conf", shown, r.why, r.fix});
        }
    }
    judge_restart(s, out);
    judge_own_select(s, out);
    return out;
}

}  // namespace banyan::doctor
