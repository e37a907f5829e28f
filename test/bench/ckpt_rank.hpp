// SPDX-License-Identifier: BSD-3-Clause
//
// A training process for the benchmarks, which does what it is told through libbanyan_ckpt and says how long
// it took. A process that does not answer in time is ended: the figure fails, not the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/fd.hpp"
#include "common/result.hpp"
#include "test/bench/ckpt_fleet.hpp"

namespace banyan::bench {

enum class deed : std::uint32_t {
    copy,     ///< memcpy of the state into a warm buffer
    save,     ///< bck_checkpoint(arg)
    wait,     ///< bck_wait(arg, level, 30 s)
    look,     ///< bck_restart_query
    restart,  ///< bck_restart
    finalize,
};

struct order {
    deed what = deed::copy;
    std::uint64_t arg = 0;
    int level = 0;
};

struct outcome_of {
    int code = 0;        ///< of the library
    double seconds = 0;  ///< of the call alone
    std::uint64_t step = 0;
    int source = 0;
    char text[160] = {};  ///< bck_error()
};

class rank_process {
  public:
    struct options {
        std::string socket;
        std::uint64_t job = 1;
        std::uint32_t rank = 0, world = 1;
        std::size_t bytes = 0;
        std::size_t regions = 1;       ///< of uneven sizes
        std::uint32_t wait_ms = 2000;  ///< BANYAN_CKPT_WAIT_MS
    };
    /// Returns when its state is made; nothing is attached yet.
    static result<rank_process> start(const options& o);
    ~rank_process();
    rank_process(rank_process&& o) noexcept;
    rank_process& operator=(rank_process&&) = delete;

    result<void> say(const order& o);
    /// As it came, whatever its code.
    result<outcome_of> hear();
    /// say and hear; a code other than `wanted` (0: BCK_OK) is an error.
    result<outcome_of> ask(const order& o, int wanted = 0);

  private:
    rank_process() = default;
    pid_t pid_ = -1;
    unique_fd channel_;
    std::string name_;
};

/// Rank 0 on node 1 with `bytes`, rank 1 on node 2 with next to nothing: all that travels is rank 0's.
result<std::vector<rank_process>> start_pair(const fleet& f, std::uint64_t job, std::size_t bytes);

/// bck_restart_query by all, as a launch that finds nothing: they are attached from there on.
result<void> look_all(std::vector<rank_process>& ranks);

/// All at the same time; the longest of their seconds.
result<double> slowest(std::vector<rank_process>& ranks, const order& o);

}  // namespace banyan::bench
