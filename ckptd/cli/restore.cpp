// SPDX-License-Identifier: BSD-3-Clause
//
// The step that the next start begins from, chosen by hand: what is newer is set aside.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ckptd/cli/commands.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

result<void> nobody_s(const std::string& dir) {
    BANYAN_TRY(const auto owner, read_owner(myself(), dir));
    if (!owner || owner->released) return {};
    return fail(
        errc::conflict,
        fmt::format("job {} on node {} has {} and has not given it back", owner->job, owner->node, dir),
        "end that job first; if it runs no more, --force goes on");
}

/// What step_path says of a step that was set aside, seen from the directory that it was set aside in.
bool is_set_aside(step_path& which) {
    std::filesystem::path dir(which.dir);
    if (dir.filename().empty()) dir = dir.parent_path();
    if (dir.filename() != set_aside_folder) return false;
    which.dir = dir.has_parent_path() ? dir.parent_path().string() : ".";
    return true;
}

result<void> restore_step(const std::string& path, bool force) {
    auto which = parse_path(path);
    if (!which.step)
        return fail(errc::invalid_input, fmt::format("{} is no step's folder", which.dir),
                    "give one, such as DIR/step-000000000050");
    const auto step = *which.step;
    if (const auto whole = verify_step(myself(), which.dir, step, 0); !whole)
        return fail(errc::conflict, fmt::format("step {} cannot be begun from: {}", step, whole.error().what),
                    "banyan-ckpt ls and verify say which can");
    const bool back = is_set_aside(which);
    if (!force) BANYAN_CHECK(nobody_s(which.dir));
    // First what is newer: else it would be the newest for a moment and then not.
    BANYAN_TRY(const auto aside, set_newer_aside(myself(), which.dir, step));
    if (back) BANYAN_CHECK(take_back(myself(), which.dir, step));
    if (back) BANYAN_CHECK(set_newer_aside(myself(), which.dir, step));
    const auto shown = printable(which.dir);
    if (!aside.empty())
        fmt::print("{} newer than it set aside in {}/{}: {}\n", aside.size() == 1 ? "step" : "steps", shown,
                   set_aside_folder, fmt::join(aside, ", "));
    fmt::print("the next start from {} begins with step {}\n", shown, step);
    return {};
}

}  // namespace

int restore(const std::string& path, bool force) {
    const auto done = restore_step(path, force);
    return done ? 0 : complain(done.error());
}

}  // namespace banyan::ckpt::cli
