// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "common/stream_line.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t worth_streaming = 64 * 1024;  // below, memcpy stays within the cache and wins
constexpr std::size_t piece = 256 * 1024;           // takes long beside the clock's steps
/// Of each way, in turn: the median counts, whatever page faults and caches do to some.
constexpr std::size_t tries = 21;
constexpr std::size_t most_ways = 8;

/// The process' choice among the ways.
class chooser {
  public:
    chooser() : all_(copy_ways().first(std::min(copy_ways().size(), most_ways))) {
        chosen_ = all_.size() < 2 ? 0 : undecided;
    }

    bool has_any() const { return !all_.empty(); }

    std::size_t copy(std::byte* to, const std::byte* from, std::size_t bytes) {
        std::size_t done = 0;
        while (chosen_.load(std::memory_order_relaxed) == undecided && bytes - done >= piece) {
            const std::unique_lock alone(measuring_, std::try_to_lock);
            if (!alone) break;  // another thread's copy decides
            done += measure(to + done, from + done);
        }
        const auto chosen = chosen_.load(std::memory_order_relaxed);
        return done + all_[chosen == undecided ? 0 : chosen].copy(to + done, from + done, bytes - done);
    }

  private:
    static constexpr std::size_t undecided = most_ways;

    std::size_t measure(std::byte* to, const std::byte* from) {
        const auto way = turn_ % all_.size();
        // Of the kernel's clock: how fast this machine is.
        const auto start = std::chrono::steady_clock::now();
        const auto done = all_[way].copy(to, from, piece);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        seconds_[way][turn_ / all_.size()] = took.count();
        if (++turn_ == all_.size() * tries) choose();
        return done;
    }
    void choose() {
        std::array<double, most_ways> medians{};
        for (std::size_t way = 0; way < all_.size(); ++way) {
            std::ranges::nth_element(seconds_[way], seconds_[way].begin() + tries / 2);
            medians[way] = seconds_[way][tries / 2];
        }
        chosen_ = static_cast<std::size_t>(std::min_element(medians.begin(), medians.begin() + all_.size()) -
                                           medians.begin());
    }

    const std::span<const copy_way> all_;
    std::atomic<std::size_t> chosen_;
    std::mutex measuring_;
    std::size_t turn_ = 0;
    std::array<std::array<double, tries>, most_ways> seconds_{};  // of a piece
};

}  // namespace

void copy_state(std::byte* to, const std::byte* from, std::size_t bytes) {
    static chooser ways;
    if (bytes >= worth_streaming && ways.has_any()) {
        const auto head = (cache_line - reinterpret_cast<std::uintptr_t>(to) % cache_line) % cache_line;
        std::memcpy(to, from, head);
        const auto done = head + ways.copy(to + head, from + head, bytes - head);
        to += done;
        from += done;
        bytes -= done;
    }
    if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace banyan::ckpt
