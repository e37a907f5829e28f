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

/// Whether the step lies where steps are set aside; then `which` gets the checkpoint directory. By what that
/// folder is, not by how it is spelled; a checkpoint directory may have its name.
result<bool> is_set_aside(step_path& which) {
    std::error_code ec;
    const auto real = std::filesystem::canonical(which.dir, ec);
    if (ec) return fail(errc::not_found, fmt::format("cannot open {}: {}", which.dir, ec.message()));
    if (real.filename() != set_aside_folder) return false;
    BANYAN_TRY(const auto owner, read_owner(myself(), which.dir));
    if (owner) return false;
    which.dir = real.parent_path().string();
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
    BANYAN_TRY(const bool back, is_set_aside(which));
    if (!force) BANYAN_CHECK(nobody_s(which.dir));
    const auto& dir = which.dir;
    const auto user = user_of(dir);
    if (back) BANYAN_CHECK(can_take_back(user, dir, step));
    // First what is newer: else it would be the newest for a moment and then not.
    BANYAN_TRY(const auto aside, set_newer_aside(user, dir, step));
    if (back) BANYAN_CHECK(take_back(user, dir, step));
    BANYAN_CHECK(set_newer_aside(user, dir, step));  // and `latest` names what came back
    const auto shown = printable(dir);
    if (!aside.empty())
        fmt::print("{} newer than it set aside in {}/{}: {}\n", aside.size() == 1 ? "step" : "steps", shown,
                   set_aside_folder, fmt::join(aside, ", "));
    BANYAN_TRY(const auto newest, list_steps(myself(), dir));
    if (newest.empty() || newest.front() != step)
        return fail(errc::conflict, fmt::format("step {} is not the newest one in {}", step, dir),
                    "something else works there: look with banyan-ckpt ls");
    fmt::print("the next start from {} begins with step {}\n", shown, step);
    return {};
}

}  // namespace

int restore(const std::string& path, bool force) {
    const auto done = restore_step(path, force);
    return done ? 0 : complain(done.error());
}

}  // namespace banyan::ckpt::cli
