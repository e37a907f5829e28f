// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which nodes have the same GPUs, by Gres in slurm.conf. Knows no Slurm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.hpp"

namespace banyan::slurm {

/// Of "gpu:h100:8(S:0-1),nvme:2" the "gpu:h100:8": which and how many, not where they are plugged in.
inline std::string gpus_in(std::string_view gres) {
    std::string out;
    for (const auto part : split(gres, ','))
        if (part == "gpu" || part.starts_with("gpu:"))
            out += (out.empty() ? "" : ",") + std::string(part.substr(0, part.find('(')));
    return out;
}

class gpu_kinds {
  public:
    /// The same number for the same GPUs; those that are asked for first have the lowest.
    std::uint32_t number_of(std::string_view gres) {
        const auto gpus = gpus_in(gres);
        auto at = std::find(known_.begin(), known_.end(), gpus);
        if (at == known_.end()) at = known_.insert(at, gpus);
        return static_cast<std::uint32_t>(at - known_.begin());
    }

  private:
    std::vector<std::string> known_;
};

}  // namespace banyan::slurm
