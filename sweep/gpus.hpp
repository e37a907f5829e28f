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

#include "sweep/finding.hpp"

namespace banyan::sweep {

struct gpu_health {
    std::string bus_id{};
    bool lost = false;              ///< fell off the bus, or waits for a reset
    std::uint64_t uncorrected = 0;  ///< memory errors since the driver was loaded
    bool remap_failed = false;      ///< a row of its memory is broken, and there is none to take its place
    std::string ecc_unknown{};      ///< why the errors could not be asked for; empty: they were
};

/// Where GPUs are asked for. The real one is NVIDIA's library; the tests' is fake_gpus.
class gpu_library {
  public:
    virtual ~gpu_library() = default;
    virtual result<std::uint32_t> count() = 0;
    virtual result<gpu_health> health(std::uint32_t index) = 0;
};

/// libnvidia-ml by dlopen. not_found: there is none on this node. conflict: the driver is not loaded.
result<std::unique_ptr<gpu_library>> open_nvml();

struct gpu_view {
    result<std::uint32_t> count = fail(errc::unavailable, "not looked at");
    std::vector<result<gpu_health>> each{};
    std::string without_health{};  ///< why there are only numbers; empty: `each` is there
};

/// `library` may be an error; then the driver's files below `root` are counted.
gpu_view look_at_gpus(const std::filesystem::path& root, result<std::unique_ptr<gpu_library>> library);

finding judge_gpus(const gpu_view& v, std::uint32_t wanted, bool ecc);

}  // namespace banyan::sweep
