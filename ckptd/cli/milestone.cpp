// SPDX-License-Identifier: BSD-3-Clause
//
// A name for a step that is to stay.
#include <cstdio>

#include <fmt/format.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/store/milestones.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

result<void> name_step(const step_path& which, const std::string& name) {
    if (!which.step)
        return fail(errc::invalid_input, fmt::format("{} is no step's folder", which.dir),
                    "give one, such as DIR/step-000000000050");
    BANYAN_TRY(const auto steps, steps_in(which.dir));
    if (milestone_step(steps, *which.step) != which.step)
        return fail(errc::not_found,
                    fmt::format("there is no committed step {} in {}", *which.step, which.dir),
                    "banyan-ckpt show DIR lists them");
    BANYAN_CHECK(set_milestone(user_of(which.dir), which.dir, name, *which.step));
    fmt::print("step {} in {} is milestone {}\n", *which.step, printable(which.dir), name);
    return {};
}

}  // namespace

int milestone(const std::string& path, const std::string& name) {
    const auto done = name_step(parse_path(path), name);
    return done ? 0 : complain(done.error());
}

}  // namespace banyan::ckpt::cli
