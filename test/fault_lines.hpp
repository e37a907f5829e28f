// SPDX-License-Identifier: BSD-3-Clause
//
// Log lines by the hundred thousand, drawn from the format strings of those who write them: faults of every
// kind in every format, ordinary lines, and lines that users can provoke.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "fault/parse/any_log.hpp"

namespace banyan::fault::testing {

struct drawn {
    log_format format = log_format::kmsg;
    std::string line;
    std::string kind;                   ///< of the event that it must give; empty: it must give none
    std::string bdf;                    ///< when the event must name that device
    std::optional<std::uint64_t> code;  ///< when the event must have it
};

class fault_lines {
  public:
    explicit fault_lines(std::uint32_t seed) : random_(seed) {}

    /// `number` chooses the format string; all of them are met within kinds() of them.
    drawn fault(std::size_t number);
    static std::size_t kinds();
    drawn ordinary(std::size_t number);
    /// By a user without rights: names of programs, `logger`, what a job prints.
    drawn provoked(std::size_t number);

  private:
    std::uint32_t below(std::uint32_t n) {
        return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_);
    }
    std::string filled(std::string_view pattern, drawn& out);
    std::string name(bool hostile);
    std::string headed(std::string text, log_format& format);

    std::mt19937 random_;
};

}  // namespace banyan::fault::testing
