// SPDX-License-Identifier: BSD-3-Clause
//
// The one source of randomness: a hash of where a number stands, so that any rank can make any weight or
// sample by itself and a sequence is never a matter of who ran before. No libm: its results differ between
// processors.
#pragma once

#include <cstdint>

namespace trainer {

/// The finaliser of splitmix64: every bit of the input reaches every bit of the output.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

template <class... More>
constexpr std::uint64_t mix(std::uint64_t first, std::uint64_t second, More... more) {
    return mix(mix(first) ^ second, more...);
}

/// From -1 to below 1, exact in a float.
constexpr float uniform(std::uint64_t bits) {
    return static_cast<float>(static_cast<std::int32_t>(bits >> 40) - (1 << 23)) * (1.0F / (1 << 23));
}

}  // namespace trainer
