// SPDX-License-Identifier: BSD-3-Clause
//
// What a process, or one of its states, has saved and been given, and so whether it may save. As at the
// beginning where it begins anew.
#pragma once

#include <cstdint>
#include <optional>

#include "ckptd/client/connection.hpp"
#include "ckptd/client/outcome.hpp"

namespace banyan::ckpt {

/// Why a process that is behind its job saves nothing. `unanswered`: it has asked, and not been told.
outcome behind(bool unanswered);

struct past {
    std::uint64_t sealed = 0;            ///< newest sealed or restored step, plus 1
    bool has_saved = false;              ///< since it was given its state, in this or an earlier session
    bool has_begun = false;              ///< it was given its state, or told that there is none, or has saved
    bool knows = false;                  ///< the same, but that it has saved
    bool must_restart = false;           ///< it was behind, and has only looked since
    bool unanswered = false;             ///< it has asked for its state, and does not know what it is
    std::optional<std::uint64_t> saved;  ///< newest step sealed since the state was restored
    std::uint64_t seals_answered = 0;    ///< of those that somebody has asked for, as the newest save began

    /// The job has gone back since this process was given its state.
    bool is_behind(const connection& daemon) const {
        return must_restart || unanswered || daemon.header().round.load() != daemon.generation();
    }
    /// The process is `now`: what another rank has saved is not this one's.
    void become(rank_name& who, const rank_name& now);
    /// What a question for the state has come to.
    outcome heard(outcome answer);
    /// It has that step's state.
    void begin_from(std::uint64_t step);
};

}  // namespace banyan::ckpt
