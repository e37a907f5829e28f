// SPDX-License-Identifier: BSD-3-Clause
//
// Pools in a row, and the slots that are handed out to them: an order says where every slot goes.
#pragma once

#include <cstdint>
#include <vector>

namespace banyan::topo {

struct order {
    /// What one pool gives: `most` hosts in its turn, and all of them only when the others do not suffice.
    struct part {
        std::uint32_t pool = 0;
        std::uint32_t most = 0, all = 0;
    };
    std::vector<part> parts;
    const std::vector<std::uint32_t>* sequence = nullptr;  ///< of all slots
    double cost = 0;

    /// Calls `seat(slot, pool)` for the slots that parts [first, last) get in their turn, when those before
    /// them got `next`. Returns the slots given out up to then.
    template <class Seat>
    std::size_t hand_out(std::size_t first, std::size_t last, std::size_t next, Seat seat) const {
        for (auto p = first; p < last && next < sequence->size(); ++p)
            for (auto count = parts[p].most; count > 0 && next < sequence->size(); --count)
                seat((*sequence)[next++], parts[p].pool);
        return next;
    }

    /// The same for every slot; the parts have hosts for all.
    template <class Seat>
    void hand_out_all(Seat seat) const {
        auto next = hand_out(0, parts.size(), 0, seat);
        for (auto p = parts.begin(); next < sequence->size(); ++p)
            for (auto count = p->all - p->most; count > 0 && next < sequence->size(); --count)
                seat((*sequence)[next++], p->pool);
    }
};

}  // namespace banyan::topo
