// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace banyan::hardware {

/// A file of /sys or /proc, without blanks around it. Anything but a file (a FIFO, a device) and more than
/// `most` bytes are errors: nothing here is read without end.
result<std::string> read_small(const std::filesystem::path& path, std::size_t most = 4096);

}  // namespace banyan::hardware
