// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the real /dev/kmsg from the oldest record that the ring still holds. Records that the ring lost
// meanwhile are counted, by their numbers, and told.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "common/wire_async.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

class kmsg_device {
  public:
    /// `lost`: so many records were overwritten before they were read.
    using loss_sink = std::function<void(std::uint64_t records)>;
    kmsg_device(std::filesystem::path path, line_sink sink, loss_sink lost);
    task<result<void>> run();
    const source_counters& counters() const { return counters_; }
    std::uint64_t position() const { return position_.value_or(0); }

  private:
    void give(std::string_view record);

    std::filesystem::path path_;
    line_sink sink_;
    loss_sink lost_;
    source_counters counters_;
    std::optional<std::uint64_t> position_;
    std::int64_t boot_ms_ = 0;  // one estimate for the life of this process: stamps must not drift apart
};

}  // namespace banyan::fault
