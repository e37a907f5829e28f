// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kmsg_device.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>

#include "common/fd.hpp"
#include "fault/sources/kmsg_record.hpp"

namespace banyan::fault {

kmsg_clocks kmsg_clocks::of_this_machine() {
    using namespace std::chrono;
    return {[] { return clock::wall_ms() * 1'000; },
            [] { return duration_cast<microseconds>(clock::now().time_since_epoch()).count(); }};
}

kmsg_device::kmsg_device(std::filesystem::path path, line_sink sink, loss_sink lost, kmsg_clocks clocks)
    : path_(std::move(path)), sink_(std::move(sink)), lost_(std::move(lost)), clocks_(std::move(clocks)) {}

// How long ago is known by a clock that nobody sets; the time of day is what it is now. On many machines
// records are stamped by the counter itself, from which NTP slews that clock away, by minutes in some months.
// A record that had just been written shows it: the least of the last few is how far the two are apart, and
// next to nothing else.
std::int64_t kmsg_device::when_ms(std::uint64_t stamp_us, bool just_written) {
    constexpr std::size_t few = 8;
    const auto late = clocks_.since_boot() - static_cast<std::int64_t>(stamp_us);
    if (just_written) {
        if (late_us_.size() == few) late_us_.pop_front();
        late_us_.push_back(late);
    }
    const auto apart = late_us_.empty() ? 0 : *std::ranges::min_element(late_us_);
    return (clocks_.wall() - std::max<std::int64_t>(0, late - apart)) / 1'000;
}

void kmsg_device::give(std::string_view record, bool just_written) {
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
    sink_({first, "kmsg", head.sequence, when_ms(head.usec, just_written && head.has_head)});
}

task<result<void>> kmsg_device::run() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        co_return fail_errno("cannot open " + path_.string(), errno,
                             "the agent must run as root to read the kernel log");
    asio::posix::stream_descriptor device(co_await asio::this_coro::executor, fd);
    std::array<char, 16384> buffer;  // larger than any record
    for (bool all_read = false;;) {
        bool just_written = std::exchange(all_read, false);
        for (int turn = 0; turn < 256 && !all_read; ++turn) {
            const auto n = ::read(fd, buffer.data(), buffer.size());
            if (n > 0) {
                give({buffer.data(), static_cast<std::size_t>(n)}, std::exchange(just_written, false));
            } else if (n < 0 && errno == EPIPE) {
                just_written = false;  // the ring ran over us: the next read gives the oldest record there is
            } else if (n < 0 && errno == EINVAL) {
                ++counters_.cut;
            } else if (n == 0 || errno != EINTR) {
                all_read = true;
            }
        }
        auto [ec] = co_await device.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
        if (ec) co_return result<void>{};
    }
}

}  // namespace banyan::fault
