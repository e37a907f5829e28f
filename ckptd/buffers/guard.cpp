// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/guard.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/mman.h>

#include "ckptd/buffers/rank_memory.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_ranges = 16384;  // read in a signal handler: no list that grows

struct range {
    std::atomic<bool> taken{false};
    std::atomic<std::uintptr_t> begin{0}, end{0};  // end is written last, and first set to 0
};
std::array<range, most_ranges> ranges;
std::atomic<std::size_t> ever{0};  // slots beyond have never been taken

bool is_guarded(std::uintptr_t at) {
    for (std::size_t i = 0; i < ever.load(); ++i)
        if (const auto end = ranges[i].end.load(); at < end && at >= ranges[i].begin.load()) return true;
    return false;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
    const auto before = errno;
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (info->si_code == BUS_ADRERR && is_guarded(at)) {
        auto* const page = reinterpret_cast<void*>(at / huge_page_bytes * huge_page_bytes);
        if (::mmap(page, huge_page_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
            errno = before;
            return;
        }
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
    r.end = 0;
    r.taken = false;
}

}  // namespace banyan::ckpt
