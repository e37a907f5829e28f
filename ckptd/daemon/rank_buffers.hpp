// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that ranks save into.
#pragma once

#include <vector>

#include "ckptd/daemon/ended_jobs.hpp"

namespace banyan::ckpt {

class rank_buffers {
  public:
    rank_buffers(daemon_core& core, ended_jobs& ended) : core_(core), ended_(ended) {}

    /// For these ranks, if it is known how much.
    task<result<void>> make_ready(session_ptr s, std::vector<std::uint32_t> ranks);
    /// At least so much in each of the rank's buffers. errc::exhausted: neither the job nor the node has so
    /// much left.
    task<result<void>> ensure(session_ptr s, std::uint32_t rank, std::uint64_t bytes);

  private:
    daemon_core& core_;
    ended_jobs& ended_;
};

}  // namespace banyan::ckpt
