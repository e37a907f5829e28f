// SPDX-License-Identifier: BSD-3-Clause
//
// The state of a rank at a step: bytes that differ in every rank and step, so that a mix-up shows.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace ckptd_test {

inline std::vector<unsigned char> state_of(std::uint32_t rank, std::uint64_t step, std::size_t bytes) {
    std::vector<unsigned char> out(bytes);
    std::minstd_rand random(static_cast<unsigned>(rank * 7919 + step * 104729 + 1));
    for (std::size_t i = 0; i < bytes; i += 61) out[i] = static_cast<unsigned char>(random());
    if (bytes > 0) out.back() = static_cast<unsigned char>(step + rank);
    return out;
}

}  // namespace ckptd_test
