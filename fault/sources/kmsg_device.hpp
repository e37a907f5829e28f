// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the real /dev/kmsg from the oldest record that the ring still holds. Records that the ring lost are
// counted.
#pragma once

#include <filesystem>

#include "common/wire_async.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

class kmsg_device {
  public:
    kmsg_device(std::filesystem::path path, line_sink sink);
    task<result<void>> run();
    const source_counters& counters() const { return counters_; }
    std::uint64_t position() const { return position_; }

  private:
    void give(std::string_view record);

    std::filesystem::path path_;
    line_sink sink_;
    source_counters counters_;
    std::uint64_t position_ = 0;
    std::int64_t boot_ms_ = 0;  // one estimate for the life of this process: stamps must not drift apart
};

}  // namespace banyan::fault
