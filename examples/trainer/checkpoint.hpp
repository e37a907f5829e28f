// SPDX-License-Identifier: BSD-3-Clause
//
// Saving and restoring the state through the node's checkpoint daemon (libbanyan_ckpt). A save that fails is
// noted once and training goes on; a restore that fails for another reason than "there is nothing" ends the
// rank, so that a state is never silently begun anew.
#pragma once

#include <optional>
#include <string>

#include "examples/trainer/model/state.hpp"
#include "examples/trainer/report.hpp"

namespace trainer {

struct restored_from {
    std::string source;  ///< local, peer or storage
};

class checkpoint {
  public:
    /// Without a promised daemon all calls do nothing. `s` must stay where it is.
    checkpoint(const task& work, const identity& self, state& s, report& out);
    ~checkpoint();
    checkpoint(const checkpoint&) = delete;
    checkpoint& operator=(const checkpoint&) = delete;

    /// Fills the state with the newest complete step; nullopt when there is none.
    std::optional<restored_from> restore();
    /// Saves after each BANYAN_CKPT_EVERY steps.
    void after_step();
    /// Waits until what was saved is safe.
    void finish();

  private:
    const task& work_;
    const identity& self_;
    state& state_;
    report& report_;
    bool active_;
    bool complained_ = false;
};

}  // namespace trainer
