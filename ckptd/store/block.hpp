// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of a tensor, and what two of them share. Pure: how a state that was saved in one layout is read in
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace banyan::ckpt {

/// A part of a tensor, row by row: a number for each of the tensor's dimensions, none for a scalar. What it
/// reaches to fits into 64 bits.
struct block {
    std::vector<std::uint64_t> begin, shape;
    bool operator==(const block&) const = default;
};

/// Elements.
std::uint64_t volume(const block& b);
/// Nothing where they share no element. Both are of one tensor.
std::optional<block> common(const block& a, const block& b);
/// What is left of `whole` without `taken`, which lies in it: at most two blocks for each dimension.
std::vector<block> without(const block& whole, const block& taken);

/// Bytes that lie in one row, where `from` and where `to` begins counted as 0.
struct run {
    std::uint64_t from = 0, to = 0, bytes = 0;
    bool operator==(const run&) const = default;
};
/// The runs of `shared`, which lies in both, in the order of either; stops where `each` says false. As long
/// as they can be.
bool for_each_run(const block& from, const block& to, const block& shared, std::size_t element,
                  const std::function<bool(const run&)>& each);

}  // namespace banyan::ckpt
