// SPDX-License-Identifier: BSD-3-Clause
//
// The trainer in a build without libbanyan_ckpt: it trains, and refuses to run where saving was promised.
#include "examples/trainer/checkpoint.hpp"
#include "examples/trainer/failure.hpp"

namespace trainer {

checkpoint::checkpoint(const identity& self, state& s, report& out)
    : self_(self), state_(s), report_(out), active_(false) {
    if (self.checkpoints)
        throw failure("BANYAN_CKPT_SOCKET is set, but this trainer was built without libbanyan_ckpt");
}
checkpoint::~checkpoint() = default;
std::optional<restored_from> checkpoint::restore() { return std::nullopt; }
void checkpoint::after_step() {}
void checkpoint::finish() {}

}  // namespace trainer
