// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/holders.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::fault {

bool too_many(std::size_t holders, std::size_t asked) { return holders > 0 && 2 * holders > asked; }

holders judge_last_run(const last_run& seen) {
    holders out;
    out.asked = seen.asked;
    out.where = seen.holding;
    out.where.insert(out.where.end(), seen.silent.begin(), seen.silent.end());
    std::ranges::sort(out.where);
    if (!seen.holding.empty())
        out.known_by = fmt::format("processes are left on {}", compress_hostlist(seen.holding));
    if (!seen.silent.empty())
        out.known_by += fmt::format("{}slurmd does not answer on {}", out.known_by.empty() ? "" : ", ",
                                    compress_hostlist(seen.silent));
    if (!seen.unknown.empty())
        out.why_not =
            fmt::format("{} of the {} nodes could not be looked at ({}), and none is taken out on a doubt",
                        seen.unknown.size(), seen.asked, seen.why);
    else if (too_many(out.where.size(), out.asked))
        out.why_not = "What so many share is not fixed by taking nodes out";
    out.taken_out = !out.where.empty() && out.why_not.empty();
    return out;
}

std::optional<holders> holder_search::look(const job_status& now, clock::time_point at) {
    if (now.id != job_ || now.phase != job_phase::completing) {
        ending_.reset();
        where_.clear();
        return std::nullopt;
    }
    if (!ending_) ending_ = at;
    auto where = now.nodes;
    std::ranges::sort(where);
    if (where != where_) {
        where_ = std::move(where);
        changed_ = at;
    }
    if (where_.empty() || where_ == told_ || at - changed_ < within_.alone) return std::nullopt;
    const bool script = std::ranges::find(where_, script_) != where_.end();
    if (at - (script ? *ending_ : since_) < within_.last_run) return std::nullopt;
    told_ = where_;
    return holders{.where = where_,
                   .why_not = "It is in the queue already, where Slurm would lose its GRES with a node"};
}

}  // namespace banyan::fault
