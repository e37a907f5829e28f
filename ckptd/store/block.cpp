// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/block.hpp"

#include <algorithm>

namespace banyan::ckpt {
namespace {

/// Bytes between neighbours in each dimension, and of all.
std::vector<std::uint64_t> strides_of(const block& b, std::size_t element) {
    std::vector<std::uint64_t> out(b.shape.size());
    std::uint64_t bytes = element;
    for (std::size_t d = out.size(); d-- > 0; bytes *= b.shape[d]) out[d] = bytes;
    return out;
}

std::uint64_t offset_in(const block& of, const std::vector<std::uint64_t>& strides,
                        const std::vector<std::uint64_t>& at) {
    std::uint64_t out = 0;
    for (std::size_t d = 0; d < at.size(); ++d) out += (at[d] - of.begin[d]) * strides[d];
    return out;
}

/// The next place within `b` in its first `dims` dimensions; false behind the last one.
bool advance(std::vector<std::uint64_t>& at, const block& b, std::size_t dims) {
    while (dims-- > 0) {
        if (++at[dims] < b.begin[dims] + b.shape[dims]) return true;
        at[dims] = b.begin[dims];
    }
    return false;
}

}  // namespace

std::uint64_t volume(const block& b) {
    std::uint64_t out = 1;
    for (const auto extent : b.shape) out *= extent;
    return out;
}

std::optional<block> common(const block& a, const block& b) {
    block out;
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
        const auto first = std::max(a.begin[d], b.begin[d]);
        const auto last = std::min(a.begin[d] + a.shape[d], b.begin[d] + b.shape[d]);
        if (first >= last) return std::nullopt;
        out.begin.push_back(first);
        out.shape.push_back(last - first);
    }
    return out;
}

std::vector<block> without(const block& whole, const block& taken) {
    std::vector<block> out;
    auto middle = whole;  // what is not cut off yet
    for (std::size_t d = 0; d < whole.shape.size(); ++d) {
        const auto first = taken.begin[d], last = first + taken.shape[d];
        const auto end = middle.begin[d] + middle.shape[d];
        if (auto before = middle; first > middle.begin[d]) {
            before.shape[d] = first - middle.begin[d];
            out.push_back(std::move(before));
        }
        if (auto after = middle; last < end) {
            after.begin[d] = last;
            after.shape[d] = end - last;
            out.push_back(std::move(after));
        }
        middle.begin[d] = first;
        middle.shape[d] = taken.shape[d];
    }
    return out;
}

bool for_each_run(const block& from, const block& to, const block& shared, std::size_t element,
                  const std::function<bool(const run&)>& each) {
    const auto from_strides = strides_of(from, element), to_strides = strides_of(to, element);
    // Whole rows of both lie one behind the other.
    std::size_t dims = shared.shape.size();
    std::uint64_t bytes = element;
    while (dims > 0) {
        --dims;
        bytes *= shared.shape[dims];
        if (shared.shape[dims] != from.shape[dims] || shared.shape[dims] != to.shape[dims]) break;
    }
    if (volume(shared) == 0) return true;
    auto at = shared.begin;
    do {
        if (!each({offset_in(from, from_strides, at), offset_in(to, to_strides, at), bytes})) return false;
    } while (advance(at, shared, dims));
    return true;
}

}  // namespace banyan::ckpt
