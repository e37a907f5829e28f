// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions of jobs, as the node's slurmd and slurmstepd open, announce and close them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ckptd/daemon/launches.hpp"
#include "ckptd/daemon/rank_buffers.hpp"
#include "common/clock.hpp"

namespace banyan::ckpt {

/// Why a job has no session here, for the ranks of its user; until it ends. Where memory was short it is
/// tried again when a rank asks.
struct refusal {
    uid_t uid = 0;
    error why;
    std::optional<session_request> request;
    std::vector<json> steps;  ///< that were announced meanwhile
    clock::time_point tried{};
};

class job_sessions {
  public:
    struct parts {
        reporter& users;
        directories& dirs;
        launches& starts;
        rank_buffers& memory;
        ended_jobs& ended;
    };
    job_sessions(daemon_core& core, const parts& p) : core_(core), to_(p) {}

    task<answer_meta> on_open(json meta);
    task<answer_meta> on_step_open(json meta);
    task<answer_meta> on_detach(json meta);
    task<answer_meta> on_close(client_ptr client, json meta);

    /// Null where the job was not refused.
    const refusal* refused(std::uint64_t job) const;
    bool any_refused() const { return !refused_.empty(); }
    /// Once more, if that was refused for want of memory; null when it is still.
    task<session_ptr> open_refused(std::uint64_t job);

  private:
    task<answer_meta> open(session_request request);

    daemon_core& core_;
    const parts to_;
    std::map<std::uint64_t, refusal> refused_;
};

}  // namespace banyan::ckpt
