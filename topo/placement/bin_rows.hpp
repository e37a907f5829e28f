// SPDX-License-Identifier: BSD-3-Clause
//
// Rows of bins with quotas, from which construction begins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topo/placement/bin_order.hpp"
#include "topo/placement/bins.hpp"
#include "topo/placement/order_problem.hpp"

namespace banyan::topo {

class bin_rows {
  public:
    /// Of bins on `island`, or of all for none. Keeps references.
    bin_rows(const std::vector<bin>& bins, const order_problem& asked, std::uint32_t island)
        : bins_(bins), asked_(asked), island_(island) {}

    /// In all of them.
    std::size_t hosts() const;
    /// All, as leaf groups are numbered: by the names of their hosts.
    bin_order by_name() const;
    /// The bins that pack takes for items of this size, those under one spine side by side; the others
    /// behind them.
    bin_order of_bins(std::uint32_t item) const;
    /// Whole items in each spine group or island (`group_of`), whose bins are filled to the last host, the
    /// largest first: where what joins those groups costs much more than what joins bins. None where there
    /// is one group.
    std::optional<bin_order> of_groups(std::uint32_t location::*group_of, std::uint32_t item) const;

  private:
    bool usable(const bin& p) const { return island_ == none || p.at.island == island_; }

    const std::vector<bin>& bins_;
    const order_problem& asked_;
    std::uint32_t island_;
};

}  // namespace banyan::topo
