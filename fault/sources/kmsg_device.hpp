// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the real /dev/kmsg from the oldest record that the ring still holds. Records that the ring lost
// meanwhile are counted, by their numbers, and told.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>

#include "common/wire_async.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

/// The time of day, which may be set at any moment, and what the kernel stamps records by, as near as
/// programs can read it: both in us.
struct kmsg_clocks {
    std::function<std::int64_t()> wall, since_boot;
    static kmsg_clocks of_this_machine();
};

class kmsg_device {
  public:
    /// `lost`: so many records were overwritten before they were read.
    using loss_sink = std::function<void(std::uint64_t records)>;
    kmsg_device(std::filesystem::path path, line_sink sink, loss_sink lost,
                kmsg_clocks clocks = kmsg_clocks::of_this_machine());
    task<result<void>> run();
    const source_counters& counters() const { return counters_; }
    std::uint64_t position() const { return position_.value_or(0); }

  private:
    /// `just_written`: all records before it had been read, and it woke us.
    void give(std::string_view record, bool just_written);
    std::int64_t when_ms(std::uint64_t stamp_us, bool just_written);

    std::filesystem::path path_;
    line_sink sink_;
    loss_sink lost_;
    source_counters counters_;
    std::optional<std::uint64_t> position_;
    kmsg_clocks clocks_;
    std::deque<std::int64_t> late_us_;  // how old the stamps of the last few were that had just been written
};

}  // namespace banyan::fault
