// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between host memory and each GPU, one GPU after the other: how fast, and whether they are right.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sweep/finding.hpp"

namespace banyan::sweep {

/// Bytes a second of the best round each way.
struct copy_rates {
    std::string bus_id{};
    double to_gpu = 0, from_gpu = 0;
    bool wrong = false;  ///< what came back is not what went
};

/// Where copies are made. The real one is CUDA's driver; the tests' are fakes.
class copier {
  public:
    virtual ~copier() = default;
    virtual std::uint32_t count() = 0;
    virtual result<copy_rates> measure(std::uint32_t gpu, std::chrono::steady_clock::duration time) = 0;
};

/// By libcuda, so many bytes at a time. `root`: where sys/ tells which CPUs are near a GPU.
result<std::unique_ptr<copier>> open_copier(const std::string& library, const std::filesystem::path& root,
                                            std::size_t bytes);

/// `wanted` in GB/s, 10^9 bytes, each way.
finding judge_copies(const std::vector<result<copy_rates>>& each, std::uint32_t wanted);

/// Measures and judges. Before each GPU its name goes to the standard error: the last words of a look that
/// does not come back.
finding check_copies(result<std::unique_ptr<copier>> by, std::uint32_t wanted,
                     std::chrono::steady_clock::duration time);

}  // namespace banyan::sweep
