// SPDX-License-Identifier: BSD-3-Clause
//
// The lines that a rank writes: to standard output, and to the log file when there is one. Each line leaves
// in one write, so that lines of several ranks never mix.
#pragma once

#include <cstdint>
#include <string>

#include "common/fd.hpp"
#include "examples/trainer/settings.hpp"

namespace trainer {

class report {
  public:
    /// Throws failure when the log cannot be opened.
    explicit report(const std::string& log);

    void started(const identity& self);
    void restored(const identity& self, std::uint64_t step, const std::string& source, std::uint64_t bytes);
    void step(std::uint64_t step, float loss, double took_ms);
    void finished(std::uint64_t steps);
    void note(const std::string& text);

  private:
    void line(std::string text);
    banyan::unique_fd log_;
};

}  // namespace trainer
