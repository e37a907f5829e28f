// SPDX-License-Identifier: BSD-3-Clause
//
// banyan.conf and the files beside it: that all parts can go by them, that users can read them, and that
// nobody else writes them.
#include "doctor/check_configuration.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "common/config.hpp"
#include "common/config_keys.hpp"
#include "common/file.hpp"
#include "doctor/access.hpp"
#include "doctor/site.hpp"
#include "fault/policy/policy_file.hpp"

namespace banyan::doctor {
namespace {

constexpr const char* faultd_effect =
    "banyan-faultd (agents and controller) and banyan-fault do not start with it";
constexpr const char* ckptd_effect =
    "banyan-ckptd does not start with it, so jobs have no checkpoints; the other daemons do";

/// What a wrong word in that table stops.
const char* effect_of(std::string_view table) {
    if (table == "ckptd" || table == "munge") return ckptd_effect;
    if (table == "fault") return faultd_effect;
    if (table == "peers") return "neither banyan-ckptd nor banyan-faultd starts with it";
    if (table == "topo") return "slurmctld goes by that key's default, as if it were not there";
    return "banyan-sweep does not start with it; the daemons do";
}

/// What is wrong with a file as a whole, then with each table, then with what only a daemon knows.
void judge_tables(const site& s, const std::string& name, findings& out) {
    const auto add = [&](const error& e, const char* why) {
        if (std::ranges::find(out, e.what, &finding::what) != out.end()) return;
        out.push_back({verdict::wrong, name, e.what, why,
                       e.hint.empty() ? "man banyan.conf; banyan-fault check-config" : e.hint});
    };
    const auto file = config_file::load(s.config_path);
    if (!file) {
        out.push_back(unusable(s.config_path, file.error()));
        return;
    }
    for (const auto& table : config_tables())
        if (const auto right = file->section(table.name).check(); !right)
            add(right.error(), effect_of(table.name));
    // They check their tables first, and stop at the first error: what was told of these is not told again.
    if (!s.fault) add(s.fault.error(), faultd_effect);
    if (!s.ckptd) add(s.ckptd.error(), ckptd_effect);
}

void judge_writers(const std::vector<std::filesystem::path>& files, findings& out) {
    for (const auto& file : files) {
        if (file.empty()) continue;
        const auto trusted = check_trusted(file);
        // That one is not there is told already.
        if (trusted || trusted.error().code == errc::not_found) continue;
        const auto& hint = trusted.error().hint;
        out.push_back({verdict::wrong, file.string(), trusted.error().what,
                       "whoever can write it decides what root's daemons do",
                       hint.empty() ? "ls -l " + file.string() : hint});
    }
}

}  // namespace

finding unusable(const std::filesystem::path& config, const error& why) {
    const char* const effect = "no daemon of banyan starts with it, and jobs have no checkpoints";
    if (why.code != errc::not_found)
        return {verdict::wrong, config.string(), why.what, effect,
                why.hint.empty() ? "banyan-fault --config " + config.string() + " check-config" : why.hint};
    return {
        verdict::wrong, config.string(), why.what, effect,
        fmt::format(
            "bring it back: banyan-tools has it as {} (dpkg --force-confmiss -i banyan-tools_*.deb, or dnf "
            "reinstall banyan-tools-*.rpm); or write it: an empty one has all defaults",
            packaged_config)};
}

std::vector<std::filesystem::path> parts_of_config(const std::filesystem::path& config) {
    auto out = config_parts(config).value_or(std::vector{config});
    out.emplace_back(config.string() + ".d");
    return out;
}

findings check_configuration(const site& s) {
    const auto name = s.config_path.empty() ? std::string("banyan.conf") : s.config_path.string();
    findings out;
    if (s.config_path.empty())
        out.push_back({verdict::note, name,
                       fmt::format("there is none at {}: all defaults are in force", packaged_config),
                       "agents look for faultd's controller on their own host",
                       fmt::format("[fault] controller = \"HOST\" in {}, on every node", packaged_config)});
    judge_tables(s, name, out);
    const auto policy = s.is.controller && s.fault ? s.fault->policy : std::string();
    if (const auto rules = fault::load_policy(policy); !rules)
        out.push_back({verdict::wrong, policy, rules.error().text(),
                       "banyan-faultd's controller does not start with it", "banyan-fault policy check"});
    auto files = config_parts(s.config_path).value_or(std::vector{s.config_path});
    files.emplace_back(policy);
    judge_writers(files, out);
    if (!s.config_path.empty())
        std::ranges::copy(judge_hidden(parts_of_config(s.config_path), hidden_config_effect),
                          std::back_inserter(out));
    if (!out.empty()) return out;
    out.push_back(fine(name, "can be read, every key is known"));
    if (s.fault->dry_run && s.is.controller)
        out.push_back(
            {verdict::note, "[fault] dry_run", "true: faults are recorded, and nothing is done about them",
             "that is right for the first weeks", "dry_run = false, then restart banyan-faultd-controller"});
    return out;
}

}  // namespace banyan::doctor
