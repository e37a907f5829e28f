// SPDX-License-Identifier: BSD-3-Clause
//
// The subjects of ckpt_bench, each with daemons of its own, so that what fails in one fails there alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>

#include "common/fd.hpp"
#include "common/result.hpp"
#include "test/bench/figures.hpp"

namespace banyan::bench {

struct ckpt_plan {
    std::size_t runs = 7;                      ///< of which each figure is the median
    std::size_t large = std::size_t{1} << 30;  ///< bytes of a rank's state
    std::size_t small = std::size_t{256} << 20;
    std::size_t steps = 100;                                             ///< of the large job
    std::uint32_t nodes = 64, ranks_of_node = 8;                         ///< of the large job
    std::filesystem::path dir = std::filesystem::temp_directory_path();  ///< stands for storage
};

using ckpt_subject = result<void>(const ckpt_plan&, figures&);

/// What a save, the first one, and a restore from the node's own memory take of the rank's time.
ckpt_subject measure_saves, measure_first_saves;
/// From a step complete in memory to one committed in storage.
ckpt_subject measure_flush;
/// The copy to the buddy, and back from it.
ckpt_subject measure_copies, measure_buddy_restore;
/// How often a byte is summed up.
ckpt_subject measure_checksums;
/// A step of a large job, from the last seal to the last rank that hears of its commit.
ckpt_subject measure_commit;
/// What a save takes while another node's daemon is dead or does not answer.
ckpt_subject measure_stall;

/// Seconds that `work` takes.
double seconds_of(const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Memory that has been touched.
result<mapping> warm_memory(std::size_t bytes);

/// "256 MiB"
std::string size_text(std::size_t bytes);

}  // namespace banyan::bench
