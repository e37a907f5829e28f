// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/file_follower.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "common/log.hpp"
#include "common/timer.hpp"

namespace banyan::fault {
namespace {

// When the file was last written, as long as that is not in the future: the best there is for a line without
// a stamp.
std::int64_t written_ms(const struct stat& s) {
    const auto modified = static_cast<std::int64_t>(s.st_mtim.tv_sec) * 1000 + s.st_mtim.tv_nsec / 1'000'000;
    return std::min(modified, clock::wall_ms());
}

}  // namespace

file_follower::file_follower(std::filesystem::path path, start from, line_sink sink)
    : path_(std::move(path)), from_(from), sink_(std::move(sink)) {}

std::string file_follower::stream() const { return fmt::format("{}-{}-{}", inode_, born_ms_, generation_); }

bool file_follower::open_file(bool first) {
    unique_fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat s {};
    if (!fd) {
        // One that is not there yet makes itself known; for anything else, try again soon.
        retry_ = errno != ENOENT;
        if (retry_) complain(fail_errno("cannot open the log " + path_.string(), errno).error());
        return false;
    }
    if (::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode) || (s.st_mode & S_IWOTH) != 0) {
        retry_ = true;  // a change of mode makes no event in the folder
        complain({errc::denied, fmt::format("the log {} is not read", path_.string()),
                  "it must be a regular file that not everybody may write"});
        return false;
    }
    retry_ = said_ = false;
    file_ = std::move(fd);
    inode_ = s.st_ino;
    device_ = s.st_dev;
    owner_ = s.st_uid;
    read_at_ = first && from_ == start::end ? static_cast<std::uint64_t>(s.st_size) : 0;
    if (first) started_at_ = read_at_;
    splitter_.restart(read_at_);
    watch_file();
    return true;
}

// Once per trouble.
void file_follower::complain(const error& e) {
    if (!std::exchange(said_, true)) spdlog::error("{}", e.text());
}

void file_follower::watch_file() {
    if (file_watch_ >= 0) ::inotify_rm_watch(notify_.get(), file_watch_);
    file_watch_ = ::inotify_add_watch(notify_.get(), path_.c_str(),
                                      IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
}

bool file_follower::replaced() const {
    struct stat s {};
    if (::stat(path_.c_str(), &s) != 0)
        return false;  // deleted: the old one is read on until a new one comes
    return s.st_ino != inode_ || s.st_dev != device_;
}

// At most some megabytes: who writes faster than we read must not keep the daemon from everything else. True
// when there may be more.
bool file_follower::read_rest() {
    std::array<char, 65536> buffer;
    for (int turn = 0; turn < 64; ++turn) {
        const auto name = stream();
        struct stat s {};
        if (::fstat(file_.get(), &s) != 0) return false;
        if (static_cast<std::uint64_t>(s.st_size) < read_at_) {
            ++generation_;
            ++counters_.restarts;
            read_at_ = 0;
            splitter_.restart(0);
            continue;
        }
        const auto n = ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(read_at_));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        read_at_ += static_cast<std::uint64_t>(n);
        const auto when = written_ms(s);
        splitter_.feed({buffer.data(), static_cast<std::size_t>(n)},
                       [&](std::string_view line, std::uint64_t at) {
                           ++counters_.lines;
                           sink_({line, name, at, when});
                       });
        counters_.cut = splitter_.cut_lines();
    }
    return true;
}

bool file_follower::look() {
    if (file_ && read_rest()) return true;
    if (file_ && !replaced()) return false;
    const bool had = static_cast<bool>(file_);
    if (!open_file(false)) return false;
    if (had) ++counters_.restarts;
    ++generation_;
    return read_rest();
}

task<result<void>> file_follower::run() {
    notify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!notify_)
        co_return fail_errno("cannot watch " + path_.string(), errno,
                             "raise fs.inotify.max_user_instances or LimitNOFILE=");
    const auto parent = path_.parent_path().empty() ? std::filesystem::path(".") : path_.parent_path();
    if (::inotify_add_watch(notify_.get(), parent.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
        co_return fail_errno("cannot watch the folder " + parent.string(), errno);
    open_file(true);
    unique_fd second(::dup(notify_.get()));
    if (!second) co_return fail_errno("cannot watch " + path_.string(), errno, "raise LimitNOFILE=");
    asio::posix::stream_descriptor wake(co_await asio::this_coro::executor, second.release());
    waiting_ = &wake;
    timer again(co_await asio::this_coro::executor);
    stopped_ = false;
    for (;;) {
        while (look() && !stopped_) co_await asio::post(asio::use_awaitable);  // the others' turn
        if (stopped_) break;
        if (retry_) {
            // Nothing announces that descriptors are free again: the wait is cut short.
            again.expires_after(std::chrono::seconds(1));
            again.async_wait([this, &wake](const boost::system::error_code& ec) {
                boost::system::error_code ignored;
                if (!ec && waiting_ == &wake) wake.cancel(ignored);
            });
        }
        auto [ec] = co_await wake.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
        again.cancel();
        if (stopped_ || (ec && ec != asio::error::operation_aborted)) break;
        std::array<char, 8192> events;
        while (::read(notify_.get(), events.data(), events.size()) > 0) {
        }
    }
    waiting_ = nullptr;
    co_return result<void>{};
}

void file_follower::stop() {
    boost::system::error_code ignored;
    stopped_ = true;
    if (waiting_) static_cast<asio::posix::stream_descriptor*>(waiting_)->cancel(ignored);
}

namespace {

// The lines of `path` from `from` to `to`, or to its end, when the file is still the one with that inode.
bool read_gap(const std::filesystem::path& path, ino_t inode, std::uint64_t from,
              std::optional<std::uint64_t> to, const std::string& stream, const line_sink& sink) {
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat s {};
    if (!fd || ::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_ino != inode) return false;
    const auto size = static_cast<std::uint64_t>(s.st_size);
    const auto end = to.value_or(size);
    if (size < end || size < from) return false;
    line_splitter splitter;
    splitter.restart(from);
    std::array<char, 65536> buffer;
    while (from < end) {
        const auto n = ::pread(fd.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), end - from),
                               static_cast<off_t>(from));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += static_cast<std::uint64_t>(n);
        splitter.feed({buffer.data(), static_cast<std::size_t>(n)},
                      [&](std::string_view line, std::uint64_t at) {
                          sink({line, stream, at, written_ms(s)});
                      });
    }
    return true;
}

// "kern.log.1", "kern.log-20261126": beside it, and still the file with that inode.
std::filesystem::path rotated(const std::filesystem::path& path, ino_t inode) {
    const auto name = path.filename().string();
    std::error_code ec;
    const auto folder = path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path();
    for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
        const auto other = it->path().filename().string();
        struct stat s {};
        if (other != name && other.starts_with(name) && ::lstat(it->path().c_str(), &s) == 0 &&
            s.st_ino == inode)
            return it->path();
    }
    return {};
}

}  // namespace

bool read_missed(const std::filesystem::path& path, const log_place& last, ino_t inode,
                 std::uint64_t started_at, const line_sink& sink) {
    if (last.inode == inode && last.position <= started_at)
        return read_gap(path, inode, last.position, started_at, last.stream, sink);
    // Cut in place: what followed is gone with it.
    const bool found = last.inode != inode && read_gap(rotated(path, last.inode), last.inode, last.position,
                                                       std::nullopt, last.stream, sink);
    const auto stream = fmt::format("{}-after-{}-{}", inode, last.stream, last.position);
    return read_gap(path, inode, 0, started_at, stream, sink) && found;
}

}  // namespace banyan::fault
