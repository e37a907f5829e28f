// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/holders.hpp"

#include <algorithm>

namespace banyan::fault {
namespace {

constexpr std::size_t fewest_shared = 2;  // what a single node has nobody shares with it

}  // namespace

bool too_many(std::size_t holders, std::size_t nodes) {
    return holders >= fewest_shared && 2 * holders > nodes;
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
    return holders{where_, false};
}

}  // namespace banyan::fault
