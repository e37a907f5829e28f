// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace banyan::supervisor {
namespace {

constexpr std::chrono::seconds between_marks{1};
constexpr std::size_t piece = 256U << 10;

/// Gives the bytes from `at` up to `end`; false when they are not there.
bool read_up_to(int fd, std::uint64_t& at, std::uint64_t end, std::vector<char>& buffer,
                const std::function<void(std::string_view)>& take) {
    while (at < end) {
        const auto got = ::pread(fd, buffer.data(), std::min<std::uint64_t>(buffer.size(), end - at),
                                 static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        take({buffer.data(), static_cast<std::size_t>(got)});
        at += static_cast<std::uint64_t>(got);
    }
    return at == end;
}

}  // namespace

/// As this host knows it, on which srun writes: to ask the file server could take for ever.
std::optional<std::uint64_t> output_file::size() const {
    struct statx about {};
    if (::statx(fd_, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &about) != 0) return {};
    if (!S_ISREG(about.stx_mode)) return {};
    return about.stx_size;
}

void output_file::begin(clock::time_point now) {
    marks_.clear();
    if (const auto bytes = size()) marks_.push_back({now, *bytes});
}

void output_file::mark(clock::time_point now) {
    if (marks_.empty() || now - marks_.back().when < between_marks) return;
    const auto bytes = size();
    if (!bytes) return marks_.clear();
    marks_.push_back({now, *bytes});
    while (now - marks_[1].when > kept) marks_.pop_front();
}

bool output_file::read(clock::time_point now, const taker& take) const {
    const auto end = size();
    if (marks_.empty() || !end || *end < marks_.front().size || *end - marks_.front().size > most)
        return false;
    const unique_fd file(::open(("/proc/self/fd/" + std::to_string(fd_)).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return false;
    std::vector<char> buffer(piece);
    auto at = marks_.front().size;
    const auto until = [&](std::uint64_t size, clock::time_point when) {
        return read_up_to(file.get(), at, size, buffer, [&](std::string_view bytes) { take(bytes, when); });
    };
    for (const auto& mark : marks_)
        if (!until(mark.size, mark.when)) return false;
    return until(*end, now);
}

}  // namespace banyan::supervisor
