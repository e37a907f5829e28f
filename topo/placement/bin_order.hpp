// SPDX-License-Identifier: BSD-3-Clause
//
// An assignment in short: bins in a row, each with a quota, and the slots in a sequence that fills one after
// the other. What changes the row changes the bins of many slots at once.
#pragma once

#include <cstdint>
#include <vector>

namespace banyan::topo {

struct bin_order {
    /// What one bin gives: its quota of hosts in its turn, and all of them only when the others do not
    /// suffice.
    struct part {
        std::uint32_t bin = 0;
        std::uint32_t quota = 0, size = 0;
    };
    std::vector<part> parts;
    const std::vector<std::uint32_t>* sequence = nullptr;  ///< of all slots
    double objective = 0;

    /// Calls `assign(slot, bin)` for the slots that parts [first, last) get in their turn, when those before
    /// them got `next`. Returns the slots assigned up to then.
    template <class Assign>
    std::size_t each_in_turn(std::size_t first, std::size_t last, std::size_t next, Assign assign) const {
        for (auto p = first; p < last && next < sequence->size(); ++p)
            for (auto count = parts[p].quota; count > 0 && next < sequence->size(); --count)
                assign((*sequence)[next++], parts[p].bin);
        return next;
    }

    /// The same for every slot; the parts have hosts for all.
    template <class Assign>
    void each(Assign assign) const {
        auto next = each_in_turn(0, parts.size(), 0, assign);
        for (auto p = parts.begin(); next < sequence->size(); ++p)
            for (auto count = p->size - p->quota; count > 0 && next < sequence->size(); --count)
                assign((*sequence)[next++], p->bin);
    }
};

}  // namespace banyan::topo
