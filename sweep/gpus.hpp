// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs and their memory errors. NVIDIA's library tells both; where it is not there, the driver's own
// files tell how many GPUs there are, and nobody how they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hardware/gpus.hpp"
#include "sweep/finding.hpp"

namespace banyan::sweep {

using hardware::gpu_health;
using hardware::gpu_library;
using hardware::open_nvml;

struct gpu_view {
    result<std::uint32_t> count = fail(errc::unavailable, "not looked at");
    std::vector<result<gpu_health>> each{};
    std::string without_health{};  ///< why there are only numbers; empty: `each` is there
};

/// `library` may be an error; then the driver's files below `root` are counted.
gpu_view look_at_gpus(const std::filesystem::path& root, result<std::unique_ptr<gpu_library>> library);

finding judge_gpus(const gpu_view& v, std::uint32_t wanted, bool ecc);

}  // namespace banyan::sweep
