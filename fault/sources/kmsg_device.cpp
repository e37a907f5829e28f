// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kmsg_device.hpp"

#include <array>
#include <cerrno>
#include <ctime>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>

#include "common/fd.hpp"
#include "fault/sources/kmsg_record.hpp"

namespace banyan::fault {

kmsg_device::kmsg_device(std::filesystem::path path, line_sink sink, loss_sink lost)
    : path_(std::move(path)), sink_(std::move(sink)), lost_(std::move(lost)) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);  // the clock of the records
    boot_ms_ = wall_ms() - (static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000);
}

void kmsg_device::give(std::string_view record) {
    // Continuation lines (" KEY=value") describe the device; the message is the first line.
    const auto first = record.substr(0, record.find('\n'));
    bool dirty = false;
    const auto head = parse_kmsg(first, dirty);
    if (head.has_head && position_ && head.sequence > *position_ + 1) {
        const auto records = head.sequence - *position_ - 1;
        counters_.lost += records;
        lost_(records);
    }
    if (head.has_head) position_ = head.sequence;
    ++counters_.lines;
    const auto when = boot_ms_ + static_cast<std::int64_t>(head.usec / 1000);
    sink_({first, "kmsg", head.sequence, std::min(when, wall_ms())});
}

task<result<void>> kmsg_device::run() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        co_return fail_errno("cannot open " + path_.string(), errno,
                             "the agent must run as root to read the kernel log");
    asio::posix::stream_descriptor device(co_await asio::this_coro::executor, fd);
    std::array<char, 16384> buffer;  // larger than any record
    for (;;) {
        for (int turn = 0; turn < 256; ++turn) {
            const auto n = ::read(fd, buffer.data(), buffer.size());
            if (n > 0) {
                give({buffer.data(), static_cast<std::size_t>(n)});
            } else if (n < 0 && errno == EPIPE) {
                continue;  // the ring ran over us: the next read gives the oldest record there is
            } else if (n < 0 && errno == EINVAL) {
                ++counters_.cut;
            } else if (n == 0 || errno != EINTR) {
                break;
            }
        }
        auto [ec] = co_await device.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
        if (ec) co_return result<void>{};
    }
}

}  // namespace banyan::fault
