// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/guard.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/mman.h>

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_ranges = guarded::most;  // read in a signal handler: no list that grows

struct range {
    std::atomic<bool> taken{false};
    std::atomic<std::uint32_t> changes{0};  // odd: begin and end hold
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<bool> holed{false};
};
std::array<range, most_ranges> ranges;
std::atomic<std::size_t> ever{0};  // slots beyond have never been taken

// Nothing below one word is read in a slot that is given to another range meanwhile.
bool spans(const range& r, std::uintptr_t at) {
    const auto before = r.changes.load();
    return before % 2 != 0 && at >= r.begin.load() && at < r.end.load() && r.changes.load() == before;
}

// All of the range becomes one mapping: holes side by side would be one each, of which a process may have
// so many.
bool put_zeros(std::uintptr_t at) {
    for (std::size_t i = 0; i < ever.load(); ++i) {
        auto& r = ranges[i];
        if (!spans(r, at)) continue;
        r.holed = true;  // first: whoever has read a zero sees the mark
        const auto begin = r.begin.load();
        return ::mmap(reinterpret_cast<void*>(begin), r.end.load() - begin, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    }
    return false;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
    const auto before = errno;
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (info->si_code == BUS_ADRERR && put_zeros(at)) {
        errno = before;
        return;
    }
    ::signal(signal, SIG_DFL);  // and the access is done again
}

}  // namespace

void guard_from_missing_pages() {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
}

guarded::guarded(const void* at, std::size_t bytes) {
    for (std::size_t i = 0; i < most_ranges; ++i) {
        if (ranges[i].taken.exchange(true)) continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(at);
        ranges[i].begin = begin;
        ranges[i].end = begin + bytes;
        ranges[i].holed = false;
        ++ranges[i].changes;
        auto known = ever.load();
        while (known <= i && !ever.compare_exchange_weak(known, i + 1)) {
        }
        slot_ = static_cast<int>(i);
        return;
    }
}

guarded::guarded(guarded&& o) noexcept : slot_(std::exchange(o.slot_, -1)) {}

guarded& guarded::operator=(guarded&& o) noexcept {
    std::swap(slot_, o.slot_);
    return *this;
}

guarded::~guarded() {
    if (slot_ < 0) return;
    auto& r = ranges[static_cast<std::size_t>(slot_)];
    ++r.changes;
    r.taken = false;
}

bool guarded::holed() const { return slot_ >= 0 && ranges[static_cast<std::size_t>(slot_)].holed; }

}  // namespace banyan::ckpt
