// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that ranks save into, and that copies for other nodes come into.
#pragma once

#include <vector>

#include "ckptd/daemon/ended_jobs.hpp"

namespace banyan::ckpt {

class rank_buffers {
  public:
    rank_buffers(daemon_core& core, reporter& users, ended_jobs& ended)
        : core_(core), users_(users), ended_(ended) {}

    /// For these ranks, if it is known how much.
    task<result<void>> make_ready(session_ptr s, std::vector<std::uint32_t> ranks);
    /// At least so much in each of the rank's buffers. errc::exhausted: neither the job nor the node has so
    /// much left.
    /// What is there grows by what is new. `huge`: the rank's process can map reserved huge pages.
    task<result<void>> ensure(session_ptr s, std::uint32_t rank, std::uint64_t bytes, bool huge = true);
    /// Memory for the first copy of each of these ranks of other nodes, so that the first one need not wait
    /// for it. Where there is none the user is told at once, with numbers.
    task<void> expect_copies(session_ptr s, std::vector<std::uint32_t> ranks);
    /// For one copy; where there is a `smaller` one that nobody uses, it grows. errc::exhausted as above.
    task<result<std::shared_ptr<shard_memory>>> replica_memory(
        session_ptr s, std::uint32_t rank, std::uint64_t bytes,
        std::shared_ptr<shard_memory> smaller = nullptr);

  private:
    daemon_core& core_;
    reporter& users_;
    ended_jobs& ended_;
};

}  // namespace banyan::ckpt
