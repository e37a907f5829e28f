// SPDX-License-Identifier: BSD-3-Clause
//
// The memory bandwidth of all CPUs together: a triad, a[i] = b[i] + s * c[i], as STREAM counts it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "common/fd.hpp"
#include "sweep/finding.hpp"

namespace banyan::sweep {

/// Held while we measure: one sweep of a node measures at a time, the others wait.
result<unique_fd> take_turn(const std::filesystem::path& root);

/// How many numbers each of `threads` has in each of its three arrays: more than caches hold, and together at
/// most a quarter of what is available.
std::size_t numbers_per_thread(std::size_t threads, std::uint64_t available_bytes);

/// Bytes a second of the best round: three numbers of eight bytes a step, as STREAM has it. Goes on until
/// `time` is over, once round at least; fails where threads or memory cannot be had.
result<double> measure_triad(std::size_t numbers, std::chrono::steady_clock::duration time);

/// `wanted` in GB/s, 10^9 bytes.
finding judge_bandwidth(double bytes_per_second, std::uint32_t wanted);

/// Measures and judges.
finding check_bandwidth(const std::filesystem::path& root, std::uint32_t wanted,
                        std::chrono::steady_clock::duration time);

}  // namespace banyan::sweep
