// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/blocks.hpp"

#include "topo/placement/communication.hpp"

namespace banyan::topo {
namespace {

/// True when blocks of `block` consecutive ranks cut no tensor parallel group, or only into whole blocks.
bool blocks_keep_tensor_groups(const shape& s, std::uint32_t block) {
    const auto size = s.size(dimension::tp);
    const auto extent =
        stride_of(s, dimension::tp) * size;  // a tp group lies within an aligned range of this length
    if (size == 1) return true;
    if (block % extent == 0) return true;
    return stride_of(s, dimension::tp) == 1 && size % block == 0;
}

}  // namespace

blocks::blocks(const request& r)
    : ranks_(r.dims.ranks()),
      size_(r.ranks_per_node),
      in_rank_order_(blocks_keep_tensor_groups(r.dims, size_)) {
    // By locality: tensor parallel neighbours first, data parallel ones last.
    order_ = all_dimensions;
    if (in_rank_order_)
        std::stable_sort(order_.begin(), order_.end(), [&](dimension a, dimension b) {
            const auto place = [&](dimension d) {
                return std::find_if(r.dims.order.begin(), r.dims.order.end(),
                                    [&](const extent& e) { return e.dim == d; });
            };
            return place(a) < place(b);
        });
    std::uint32_t at = 1;
    for (const auto d : order_) {
        const auto size = r.dims.size(d);
        digits_[d] = {size, at, size > 1 ? stride_of(r.dims, d) : 1};
        at *= size;
    }
}

std::uint32_t blocks::position_of(std::uint32_t rank) const {
    if (in_rank_order_) return rank;
    std::uint32_t out = 0;
    for (const auto& d : digits_)
        if (d.size > 1) out += rank / d.rank % d.size * d.at;
    return out;
}

std::uint32_t blocks::rank_at(std::uint32_t position) const {
    if (in_rank_order_) return position;
    std::uint32_t out = 0;
    for (const auto& d : digits_)
        if (d.size > 1) out += position / d.at % d.size * d.rank;
    return out;
}

std::vector<std::uint32_t> blocks::all_ranks() const {
    std::vector<std::uint32_t> out(ranks_);
    std::array<std::uint32_t, dimension_count> at{};  // without a division for each rank
    std::uint32_t rank = 0;
    for (auto& each : out) {
        each = rank;
        for (std::size_t i = 0; i < at.size(); ++i) {
            const auto& d = digit_of(order_[i]);
            if (++at[i] < d.size) {
                rank += d.rank;
                break;
            }
            at[i] = 0;
            rank -= d.rank * (d.size - 1);
        }
    }
    return out;
}

std::uint32_t blocks::least_rank(std::uint32_t block) const {
    const std::uint64_t begin = std::uint64_t{block} * size_, end = begin + size_;
    auto least = rank_at(static_cast<std::uint32_t>(begin));
    if (in_rank_order_) return least;
    // A position after the first is larger in some digit, and no smaller in those above it: with the digits
    // below at 0, and that one larger by 1 only, its rank is the smallest of its kind.
    for (const auto& d : digits_) {
        if (d.size < 2) continue;
        const auto next = (begin / d.at + 1) * d.at;
        if (next < end) least = std::min(least, rank_at(static_cast<std::uint32_t>(next)));
    }
    return least;
}

}  // namespace banyan::topo
