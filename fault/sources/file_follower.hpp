// SPDX-License-Identifier: BSD-3-Clause
//
// Follows a plain log file by name: woken by inotify (by a timer only while the file cannot be opened),
// through truncation in place, replacement by another file, deletion and late creation. Gives whole lines,
// never fails for what is in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <sys/types.h>

#include "common/fd.hpp"
#include "common/wire_async.hpp"
#include "fault/sources/line_splitter.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

class file_follower {
  public:
    enum class start { beginning, end };

    /// `from` says where a file begins that exists when run() starts; one that appears later is read whole.
    file_follower(std::filesystem::path path, start from, line_sink sink);

    /// Until the executor stops or `stop` is called. Returns an error when inotify is not to be had.
    task<result<void>> run();
    void stop();

    const source_counters& counters() const { return counters_; }
    std::string stream() const;
    std::uint64_t position() const { return splitter_.position(); }
    /// Where reading began in the file that was there at the start (for reading the gap before it).
    std::uint64_t started_at() const { return started_at_; }
    ino_t inode() const { return inode_; }
    /// Of the file that is open, or was last.
    uid_t owner() const { return owner_; }

  private:
    bool open_file(bool first);
    bool look();       // what can be read now; true when there may be more
    bool read_rest();  // of the open file
    void complain(const error& e);
    bool replaced() const;
    void watch_file();

    std::filesystem::path path_;
    start from_;
    line_sink sink_;
    line_splitter splitter_;
    unique_fd file_, notify_;
    int file_watch_ = -1;
    ino_t inode_ = 0;
    dev_t device_ = 0;
    uid_t owner_ = 0;
    std::uint64_t read_at_ = 0, started_at_ = 0, generation_ = 0;
    std::int64_t born_ms_ = clock::wall_ms();
    source_counters counters_;
    bool retry_ = false;  // the file is there, and cannot be opened
    bool said_ = false;   // ... which was said
    bool stopped_ = false;
    void* waiting_ = nullptr;  // the descriptor that run() waits on, while it does
};

/// How far somebody read a log.
struct log_place {
    ino_t inode = 0;
    std::uint64_t position = 0;
    std::string stream;
};

/// What was written to `path` while nobody followed, from `last` to where a follower began: `inode` at
/// `started_at`. Through one rotation, whatever the old file is called beside it, and through truncation:
/// then the lines of the new one have a stream that follows from `last`, so that reading them twice does no
/// harm. False: the rest of the old file was not to be found.
bool read_missed(const std::filesystem::path& path, const log_place& last, ino_t inode,
                 std::uint64_t started_at, const line_sink& sink);

}  // namespace banyan::fault
