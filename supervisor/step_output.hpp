// SPDX-License-Identifier: BSD-3-Clause
//
// What a step's output tells of its end: srun's lines on how its tasks ended, and the exceptions of Python.
// An exception that a program handled looks like one that ended it, so only those around the end of the first
// task count, and where torch names the rank, which it does for those that end one, these alone.
// No file, no clock of its own. Memory is bounded, whatever the output.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.hpp"
#include "supervisor/failure.hpp"

namespace banyan::supervisor {

class step_output {
  public:
    /// `launchers`: the tasks are no ranks, they start them.
    explicit step_output(bool launchers) : launchers_(launchers) {}

    /// The next bytes, as they come, written at about `when`.
    void take(std::string_view bytes, clock::time_point when);
    /// All was taken. Once only.
    failure end();

  private:
    /// How tasks ended: by an exit code, out of memory, or by a signal.
    struct task_end {
        std::string tasks, nodes;
        std::optional<std::uint64_t> code;
        bool out_of_memory = false;
        clock::time_point when;
    };
    struct exception {
        std::optional<std::uint64_t> rank;  ///< where torch says it
        std::string type, text;
        blame whose = blame::program;
        clock::time_point when;
    };

    void take_line(std::string_view line);
    void take_words(std::string_view words);
    void of_slurm(std::string_view words);
    void of_launcher(std::string_view words);
    void of_python(std::string_view words);
    void add(exception raised);
    const exception* first_exception();
    std::string words(const exception* first) const;

    bool launchers_;
    std::string line_;                         // its beginning and its end, when it is long
    clock::time_point when_;                   // of what is taken now
    std::optional<task_end> first_;            // task that ended badly
    bool told_to_end_ = false;                 // before that, by Slurm
    bool aborted_ = false;                     // it was, or a launcher's process before it: SIGABRT
    bool signalled_ = false;                   // the same by another signal
    bool chained_ = false;                     // the next exception came of the one before it
    std::deque<exception> exceptions_;         // in order, none for longer than it may count
    std::optional<clock::time_point> device_;  // when the latest of a device came
    std::optional<clock::time_point> peer_;    // the same of a peer, without a rank's name
    bool ignored_ = false;                     // the next exception ended nothing
};

}  // namespace banyan::supervisor
