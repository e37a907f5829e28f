// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/bandwidth.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "sweep/memory.hpp"

namespace banyan::sweep {

result<unique_fd> take_turn(const std::filesystem::path& root) {
    // Of root a file that nobody else can hold; of others the program itself, which is always there.
    const auto lock = ::geteuid() == 0 ? root / "run/banyan-sweep.lock" : "/proc/self/exe";
    const int how = ::geteuid() == 0 ? O_RDWR | O_CREAT | O_NOFOLLOW : O_RDONLY;
    unique_fd fd(::open(lock.c_str(), how | O_CLOEXEC, 0600));
    if (!fd) return fail_errno("cannot open " + lock.string(), errno);
    while (::flock(fd.get(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno("cannot take the lock", errno);
    return fd;
}

std::size_t numbers_per_thread(std::size_t threads, std::uint64_t available_bytes) {
    constexpr std::size_t least_for_all = 32u << 20, least_for_each = 2u << 20;  // in numbers: 256 and 16 MiB
    const auto wanted = std::max(least_for_all / std::max<std::size_t>(threads, 1), least_for_each);
    const auto room = available_bytes / 4 / 3 / sizeof(double) / std::max<std::size_t>(threads, 1);
    return std::min<std::size_t>(wanted, room);
}

finding judge_bandwidth(double bytes_per_second, std::uint32_t wanted) {
    constexpr double giga = 1e9;
    const auto what =
        fmt::format("{:.1f} GB/s by a triad on all CPUs, expected {}", bytes_per_second / giga, wanted);
    auto out = bytes_per_second >= wanted * giga ? fit(what) : unfit(what);
    out.figures["memory_bandwidth_bytes_per_second"] = bytes_per_second;
    return out;
}

finding check_bandwidth(const std::filesystem::path& root, std::uint32_t wanted,
                        std::chrono::steady_clock::duration time) {
    const auto turn = take_turn(root);
    if (!turn) return unknown(turn.error());
    const auto available = available_memory(root);
    if (!available) return unknown(available.error());
    cpu_set_t cpus;
    if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return unknown({errc::unavailable, "the CPUs that we may use are not known", {}});
    const auto rate =
        measure_triad(numbers_per_thread(static_cast<std::size_t>(CPU_COUNT(&cpus)), *available), time);
    return rate ? judge_bandwidth(*rate, wanted) : unknown(rate.error());
}

}  // namespace banyan::sweep
