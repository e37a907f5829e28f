// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/full_size.hpp"

namespace banyan::supervisor {
namespace {

// A look costs slurmctld a test of the nodes; a start in vain costs the training some twenty seconds.
constexpr std::chrono::seconds between_looks{30};
constexpr std::chrono::minutes after_a_start_in_vain{10};

}  // namespace

full_size::full_size(clock::time_point now, bool in_vain)
    : next_(in_vain ? now + after_a_start_in_vain : now + between_looks) {}

bool full_size::is_due(clock::time_point now, std::optional<std::uint64_t> saved) {
    if (!is_near(now)) return false;
    if (saved && !saved_) saved_ = saved;
    if (saved && *saved <= *saved_) return false;
    saved_.reset();
    next_ = now + between_looks;
    return saved.has_value();
}

}  // namespace banyan::supervisor
