// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/holes.hpp"

#include <fmt/format.h>

namespace banyan::ckpt {

bool give_up_holed(reporter& users, const session_ptr& s, std::uint32_t rank) {
    bool found = false;
    const auto before = s->copies;
    for (const auto& c : before) {
        if (c->rank != rank || !c->memory->is_holed()) continue;
        found = true;
        c->dropped = true;
        s->agreed->lose(c->number);
        std::erase(s->copies, c);
    }
    if (const auto it = s->ranks.find(rank);
        it != s->ranks.end() && it->second.memory && it->second.memory->is_holed()) {
        found = true;
        auto& r = it->second;
        r.memory.reset();
        r.buffers = 0;
        r.buffer_bytes = 0;
    }
    if (!found) return false;
    users.warn(s, fmt::format("holes of {}", rank),
               fmt::format("rank {} has made holes in the memory that it shares with the daemon: what it "
                           "saved there is lost, and it saves no more until it attaches again",
                           rank));
    s->notify();
    return true;
}

}  // namespace banyan::ckpt
