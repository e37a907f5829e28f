// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs of this host: whether ranks can use them, and whether the checkpoint library can copy from them.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "common/result.hpp"
#include "doctor/finding.hpp"
#include "hardware/cuda.hpp"
#include "hardware/gpus.hpp"

namespace banyan::doctor {

/// Where to look.
struct gpu_place {
    std::filesystem::path root{"/"};  ///< where proc/ and sys/ are
    std::string nvml{hardware::nvml_library}, cuda{hardware::cuda_library}, nccl{"libnccl.so.2"};
    std::chrono::seconds patience{60};  ///< with a library of NVIDIA's, which may hang with a card
};

/// One line where there is no GPU; else one each for the GPUs, the driver, NCCL, and copies.
findings look_at_gpus(const gpu_place& where);

/// A state on each GPU goes to memory that is pinned, and comes back, as the checkpoint library does it. How
/// many GPUs there were. conflict: it did not, or came back other. Uses some memory of each GPU; for a
/// process of its own.
result<std::uint32_t> try_copies(const std::string& cuda_library);

}  // namespace banyan::doctor
