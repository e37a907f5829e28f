// SPDX-License-Identifier: BSD-3-Clause
//
// Steps in storage: which there are, and whether they are whole.
#include <cstdio>

#include <fmt/format.h>

#include "ckptd/cli/commands.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {

int list(const std::string& dir) {
    const auto steps = steps_in(dir);
    if (!steps) return complain(steps.error());
    for (const auto step : *steps) {
        const auto m = ckpt::scan_step(myself(), dir, step, 0);
        if (!m && !is_listed(dir, step)) continue;
        if (!m)
            fmt::print("{:>12}  {}: {}\n", step, state_by(m.error()), printable(m.error().what));
        else
            fmt::print("{:>12}  job {}  {} ranks  {}\n", step, m->job, m->world, format_bytes(m->bytes));
    }
    if (steps->empty()) fmt::print("no committed step in {}\n", printable(dir));
    return 0;
}

namespace {

// Every shard against the manifest, which is checked as a whole first: then it says what the files should be.
// Returns the number of damaged files.
result<std::size_t> count_damaged(const std::string& dir, std::uint64_t step) {
    BANYAN_CHECK(ckpt::scan_step(myself(), dir, step, 0));
    std::size_t damaged = 0;
    const auto check = [&](const ckpt::shard_file& f) {
        const auto read = ckpt::check_shard(myself(), dir, step, f);
        if (read) return;
        ++damaged;
        fmt::print("{}\n", printable(read.error().what));
    };
    BANYAN_TRY(const auto m, ckpt::scan_step(myself(), dir, step, 0, check));
    fmt::print("step {}: {} of {} files are whole\n", step, m.world - damaged, m.world);
    return damaged;
}

}  // namespace

int verify(const std::string& dir, const std::string& which) {
    std::vector<std::uint64_t> steps;
    if (!which.empty()) {
        const auto step = parse_number(which);
        if (!step) return complain(step.error());
        steps = {*step};
    } else {
        const auto all = steps_in(dir);
        if (!all) return complain(all.error());
        steps = *all;
        if (steps.empty())
            return complain({errc::not_found, fmt::format("no committed step in {}", dir), ""});
    }
    bool whole = true;
    for (const auto step : steps) {
        const auto damaged = count_damaged(dir, step);
        if (which.empty() && !(damaged && *damaged == 0) && !is_listed(dir, step)) continue;
        if (!damaged) complain(damaged.error());
        whole = whole && damaged && *damaged == 0;
    }
    return whole ? 0 : 1;
}

}  // namespace banyan::ckpt::cli
