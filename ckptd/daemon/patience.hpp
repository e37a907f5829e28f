// SPDX-License-Identifier: BSD-3-Clause
//
// How long to wait for something that usually comes: a multiple of the longest of the last few times, within
// bounds. As long as too few are known it is the upper bound. Pure: no clock, no timer.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "common/clock.hpp"

namespace banyan::ckpt {

class patience {
  public:
    using duration = clock::duration;
    struct bounds {
        int times;       ///< the usual time
        duration least;  ///< a hiccup of the machine or the network is no longer than this
        duration longest;
    };
    static constexpr std::size_t known_after = 4;  ///< the first ones make memory, connections, caches

    /// It has come, after so long.
    void note(duration took) {
        took_[noted_ % took_.size()] = std::max(took, duration::zero());
        ++noted_;
    }
    /// What comes now has nothing to do with what came before.
    void forget() { noted_ = 0; }
    duration limit(const bounds& b) const {
        if (noted_ < known_after) return b.longest;
        const auto known = std::min(noted_, took_.size());
        const auto usual =
            *std::max_element(took_.begin(), took_.begin() + static_cast<std::ptrdiff_t>(known));
        if (usual >= b.longest / b.times) return b.longest;
        return std::clamp(usual * b.times, std::min(b.least, b.longest), b.longest);
    }

  private:
    std::array<duration, 8> took_{};
    std::size_t noted_ = 0;
};

}  // namespace banyan::ckpt
