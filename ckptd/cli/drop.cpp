// SPDX-License-Identifier: BSD-3-Clause
//
// Removal of a step, unless something hangs on it.
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/store/milestones.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

// A job that runs has told its ranks that its newest step is in storage.
result<void> not_a_job_s(const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto steps, steps_in(dir));
    if (steps.empty() || steps.front() != step) return {};
    BANYAN_TRY(const auto owner, read_owner(user_of(dir), dir));
    if (!owner || owner->released) return {};
    return fail(errc::conflict,
                fmt::format("step {} is the newest one in {}, which job {} on node {} has not given back",
                            step, dir, owner->job, owner->node),
                "if that job runs no more, --force removes it");
}

result<void> not_the_only_one(const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto steps, steps_in(dir));
    std::string unseen;
    for (const auto other : steps) {
        if (other == step) continue;
        const auto whole = verify_step(user_of(dir), dir, other, 0);
        if (whole) return {};
        if (!was_seen(whole.error()) && unseen.empty())
            unseen = fmt::format(", as far as could be seen: step {}: {}", other, whole.error().what);
    }
    const auto whole = verify_step(user_of(dir), dir, step, 0);
    if (!whole && was_seen(whole.error())) return {};  // nothing that could be restored is lost
    if (!whole)
        return fail(errc::unavailable, fmt::format("step {} may be whole: {}", step, whole.error().what),
                    "--force removes it all the same");
    return fail(errc::conflict, fmt::format("step {} is the only whole one in {}{}", step, dir, unseen),
                "--force removes it all the same");
}

/// Milestones that are this step.
result<std::vector<std::string>> names_of(const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto named, list_milestones(user_of(dir), dir));
    BANYAN_TRY(const auto steps, steps_in(dir));
    return assign_milestones(named, steps).at[step];
}

/// Its step goes, too, unless it has another name or is not there yet.
result<bool> drop_name_alone(const milestone_path& named) {
    std::string why = "its step is not in storage yet";
    const auto step = find_milestone(user_of(named.dir), named);
    if (!step && step.error().code != errc::not_found) return std::unexpected(step.error());
    if (step) {
        BANYAN_TRY(auto others, names_of(named.dir, *step));
        std::erase(others, named.name);
        if (others.empty()) return false;
        why = fmt::format("step {} stays, for it is milestone {}, too", *step, others.front());
    }
    BANYAN_CHECK(drop_milestone(user_of(named.dir), named.dir, named.name));
    fmt::print("milestone {} is gone from {}; {}\n", named.name, printable(named.dir), why);
    return true;
}

result<void> drop_unless_needed(const step_path& which, bool force) {
    if (!which.step)
        return fail(errc::invalid_input, fmt::format("{} is no step's folder", which.dir),
                    "give one, such as DIR/step-000000000050");
    if (!force) BANYAN_CHECK(not_a_job_s(which.dir, *which.step));
    if (!force) BANYAN_CHECK(not_the_only_one(which.dir, *which.step));
    BANYAN_TRY(const auto names, names_of(which.dir, *which.step));
    // First: a name without its step would become that of a later one.
    for (const auto& name : names) BANYAN_CHECK(drop_milestone(user_of(which.dir), which.dir, name));
    BANYAN_CHECK(drop_step(user_of(which.dir), which.dir, *which.step));
    fmt::print("step {} is gone from {}{}\n", *which.step, printable(which.dir),
               names.empty() ? "" : fmt::format(", and milestone {}", fmt::join(names, ", ")));
    return {};
}

}  // namespace

int drop(const std::string& path, bool force) {
    if (const auto named = milestone_of(path)) {
        const auto done = drop_name_alone(*named);
        if (!done) return complain(done.error());
        if (*done) return 0;
    }
    const auto done = drop_unless_needed(parse_path(path), force);
    return done ? 0 : complain(done.error());
}

}  // namespace banyan::ckpt::cli
