// SPDX-License-Identifier: BSD-3-Clause
//
// Files as a root daemon must handle them: bounded reads, atomic and durable writes, ownership checked before
// trust.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan {

/// What lets this process read a file that it could not look at or open with `err`; empty where that is no
/// matter of permission.
std::string hint_for(int err);

/// The whole file as bytes; refuses more than `max_bytes`. Reads to the end, so pipes and /proc work too.
result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

/// Writes all of `data` to `fd` at `offset`, through short writes and EINTR.
result<void> write_all(int fd, std::span<const std::byte> data, off_t offset, const std::string& name);

/// Replaces `path` so that a reader (also after a crash) sees the old or the new content, never a part:
/// temporary file in the same directory, fsync, rename, fsync of the directory. On error the old content
/// stays. What is there and no regular file (a device, a FIFO, a symbolic link) is never replaced.
result<void> write_file_atomic(const std::filesystem::path& path, std::string_view data, mode_t mode = 0644);

/// fsync of a directory, after a rename in it.
result<void> sync_directory(const std::filesystem::path& directory);

/// Refuses a file that somebody other than root or the caller could have written: symlink, foreign owner,
/// group- or world- writable, or a parent directory that is (unless sticky).
result<void> check_trusted(const std::filesystem::path& path);

}  // namespace banyan
