// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes in, lines out, whatever the bytes are: half lines wait for their rest, over-long lines are cut (their
// head is kept, the rest skipped to the next line feed). Memory is bounded by `max_line`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace banyan::fault {

class line_splitter {
  public:
    /// `line` without its line feed; `offset` is where it began in the stream.
    using sink = std::function<void(std::string_view line, std::uint64_t offset)>;

    explicit line_splitter(std::size_t max_line = 8192) : max_line_(max_line) {}

    void feed(std::string_view bytes, const sink& out);
    /// Forgets a half line: the file was replaced or cut.
    void restart(std::uint64_t offset);
    /// Where the first line begins that was not yet given out.
    std::uint64_t position() const { return line_start_; }
    std::uint64_t cut_lines() const { return cut_lines_; }

  private:
    void keep(std::string_view part);

    std::size_t max_line_;
    std::string half_;
    bool cutting_ = false;
    std::uint64_t line_start_ = 0;
    std::uint64_t pending_ = 0;  // bytes of the half line, those that were cut included
    std::uint64_t cut_lines_ = 0;
};

}  // namespace banyan::fault
