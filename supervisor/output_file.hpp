// SPDX-License-Identifier: BSD-3-Clause
//
// The file that a step writes its output to, where that is one, as in a script for sbatch. srun writes it by
// itself; what it wrote is read when the step is over, so that nothing here can hold up or lose a line. How
// large the file was, and when, tells about when a line was written.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>

#include "common/clock.hpp"

namespace banyan::supervisor {

class output_file {
  public:
    /// `fd`: of this process, open for writing; it stays its owner's.
    explicit output_file(int fd) : fd_(fd) {}

    /// A step begins.
    void begin(clock::time_point now);
    /// To be called every second or two while it runs. Never waits for a file server.
    void mark(clock::time_point now);
    /// Whether there is a file to mark.
    bool is_file() const { return !marks_.empty(); }

    using taker = std::function<void(std::string_view bytes, clock::time_point when)>;
    /// Gives what was written in the last `kept` of the step, in order. False: there is no such file, it
    /// cannot be read, it was cut, or that is more than `most`.
    bool read(clock::time_point now, const taker& take) const;

    /// As long as srun lets tasks live that do not end on SIGTERM (KillWait), and what came before that.
    static constexpr std::chrono::seconds kept{100};
    static constexpr std::uint64_t most = 256U << 20;

  private:
    struct point {
        clock::time_point when;
        std::uint64_t size;
    };
    std::optional<std::uint64_t> size() const;

    int fd_;
    std::deque<point> marks_;  // the first is the last one that is older than `kept`
};

}  // namespace banyan::supervisor
