// SPDX-License-Identifier: BSD-3-Clause
//
// An all-reduce by NCCL over the node's GPUs: how fast, and whether its sums are right. Only in a program
// that was built with NCCL's headers; the library comes by dlopen.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sweep/finding.hpp"

namespace banyan::sweep {

inline constexpr const char* nccl_library = "libnccl.so.2";

struct reduction {
    std::uint32_t gpus = 0;            ///< with one there is nothing to measure, and nothing else in here
    double bus_bytes_per_second = 0;   ///< as nccl-tests have it: what each GPU's link carries
    std::vector<std::string> wrong{};  ///< bus ids of GPUs with wrong sums
};

/// Whether this program can ask NCCL at all.
bool built_with_nccl();

/// By libcuda and libnccl, over so many bytes of each GPU. conflict: the GPUs, not the asking, are at fault.
result<reduction> measure_allreduce(const std::string& cuda, const std::string& nccl, std::size_t bytes,
                                    std::chrono::steady_clock::duration time);

/// `wanted` in GB/s, 10^9 bytes; `gpus` that the node has to have, 0: that is not said.
finding judge_allreduce(const result<reduction>& r, std::uint32_t wanted, std::uint32_t gpus);

}  // namespace banyan::sweep
