// SPDX-License-Identifier: BSD-3-Clause
#include "common/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/fd.hpp"

namespace banyan {
namespace {

static_assert(clock::held::is_always_lock_free, "several processes share it");
std::atomic<const clock::held*> held_time{nullptr};
std::atomic<clock::rep> wall_of_held{0};  // the time of day less held time, which begins at the kernel's

template <class Clock>
clock::duration since_epoch() {
    return std::chrono::duration_cast<clock::duration>(Clock::now().time_since_epoch());
}

}  // namespace

clock::time_point clock::now() noexcept {
    const auto* held = held_time.load(std::memory_order_acquire);
    return time_point(held ? duration(held->load(std::memory_order_acquire))
                           : since_epoch<std::chrono::steady_clock>());
}

std::int64_t clock::wall_ms() noexcept {
    const auto wall = held_time ? now().time_since_epoch() + duration(wall_of_held)
                                : since_epoch<std::chrono::system_clock>();
    return std::chrono::floor<std::chrono::milliseconds>(wall).count();
}

clock::duration clock::before_next_look(duration left) noexcept {
    return held_time ? std::min<duration>(left, std::chrono::milliseconds(1)) : left;
}

int clock::poll_ms(time_point until) noexcept {
    const auto left =
        before_next_look(std::clamp<duration>(until - now(), duration::zero(), std::chrono::hours(1)));
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void clock::sleep_until(time_point until) {
    for (auto left = until - now(); left > duration::zero(); left = until - now())
        std::this_thread::sleep_for(before_next_look(left));
}

void clock::follow(const held* time) noexcept {
    const auto steady = since_epoch<std::chrono::steady_clock>();
    wall_of_held = (since_epoch<std::chrono::system_clock>() - steady).count();
    held_time.store(time, std::memory_order_release);
}

result<void> clock::follow_environment() {
    const char* path = ::secure_getenv("BANYAN_CLOCK");
    if (!path) return {};
    const unique_fd file(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0)
        return fail_errno(fmt::format("cannot open {}, which BANYAN_CLOCK names", path), errno);
    if (about.st_size < static_cast<off_t>(sizeof(held)))
        return fail(errc::invalid_input,
                    fmt::format("{}, which BANYAN_CLOCK names, is shorter than 8 bytes", path));
    void* page = ::mmap(nullptr, sizeof(held), PROT_READ, MAP_SHARED, file.get(), 0);
    if (page == MAP_FAILED) return fail_errno(fmt::format("cannot map {}", path), errno);
    follow(static_cast<const held*>(page));
    return {};
}

}  // namespace banyan
