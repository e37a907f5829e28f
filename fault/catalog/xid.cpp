// SPDX-License-Identifier: BSD-3-Clause
#include "fault/catalog/xid.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

namespace banyan::fault::catalog {
namespace {

constexpr xid_row table[] = {
#include "xid_table.inc"
};
// find_xid() searches it by halves: numbers rise, and none stands twice.
static_assert(std::size(table) > 170);
static_assert(std::ranges::adjacent_find(table, std::ranges::greater_equal{}, &xid_row::code) ==
              std::end(table));

constexpr std::array<std::string_view, 10> names{"ignore",       "advice", "cleanup",    "restart_app",
                                                 "support",      "nvlink", "ecc_double", "reset_gpu",
                                                 "restart_node", "verdict"};

}  // namespace

const xid_row* find_xid(std::uint32_t code) {
    const auto it = std::ranges::lower_bound(table, code, {}, &xid_row::code);
    return it != std::end(table) && it->code == code ? it : nullptr;
}

std::span<const xid_row> xids() { return table; }

std::string_view name_of(bucket b) { return names[static_cast<std::size_t>(b)]; }

}  // namespace banyan::fault::catalog
