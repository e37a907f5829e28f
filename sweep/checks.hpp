// SPDX-License-Identifier: BSD-3-Clause
//
// Every check by its name. How one looks and how it judges stands in a file of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cuda.hpp"
#include "sweep/allreduce.hpp"
#include "sweep/finding.hpp"
#include "sweep/settings.hpp"

namespace banyan::sweep {

/// What a look needs.
struct place {
    settings asked{};
    std::filesystem::path root{"/"};  ///< where proc/ and sys/ are
    std::chrono::steady_clock::duration measure_for{std::chrono::seconds(1)};
    std::string cuda{hardware::cuda_library}, nccl{nccl_library};
    std::size_t gpu_bytes{std::size_t{128} << 20};  ///< that go to, from or between GPUs at a time
};

/// Looks and judges; runs in a child process.
using judged_look = std::function<finding()>;

struct check {
    std::string_view name;  ///< also that of the key which asks for it
    bool idle_only;         ///< says nothing while a job runs
    bool alone;             ///< measures: nothing else of ours runs beside it
    bool (*asked)(const settings&);
    std::vector<judged_look> (*looks)(const place&);
};

std::span<const check> all_checks();

/// Those that the settings ask for; of these the ones of `only`, unless it is empty. Fails where a name is no
/// check, or not asked for, and where nothing is left: a sweep that looks at nothing must not say "fit".
result<std::vector<check>> choose(const settings& s, const std::vector<std::string>& only);

}  // namespace banyan::sweep
