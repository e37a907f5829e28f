// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/all_to_all.hpp"

namespace banyan::topo {

std::uint64_t all_to_all::pairs() const {
    std::uint64_t out = 0;
    for (std::uint32_t block = 0; block < cut_.count(); ++block) {
        const std::uint64_t begin = std::uint64_t{block} * size_;
        if (size_ <= stride_)
            out += members_ - 1 - begin / stride_ % members_;
        else
            out += (end_of_period(last_part(block)) - 1) / size_ - block;
    }
    return out;
}

all_to_all::range all_to_all::last_part(std::uint32_t block) const {
    const std::uint64_t begin = std::uint64_t{block} * size_, end = begin + size_;
    return {std::max(begin, (end - 1) / period_ * period_), end};
}

std::uint64_t all_to_all::shared(const range& a, const range& b) const {
    // A group has one member at every stride: as many in a range as whole strides, and one more where the
    // rest of the range meets it, which lies somewhere on a circle of one stride.
    const auto whole_a = a.length() / stride_, rest_a = a.length() % stride_;
    const auto whole_b = b.length() / stride_, rest_b = b.length() % stride_;
    const auto at_a = a.begin % stride_, at_b = b.begin % stride_;
    const auto both = [&](std::uint64_t first, std::uint64_t second) {
        const auto low = std::max(first, second), high = std::min(first + rest_a, second + rest_b);
        return high > low ? high - low : 0;
    };
    const auto rests = both(at_a + stride_, at_b) + both(at_a + stride_, at_b + stride_) +
                       both(at_a + stride_, at_b + 2 * stride_);
    return stride_ * whole_a * whole_b + whole_a * rest_b + whole_b * rest_a + rests;
}

}  // namespace banyan::topo
