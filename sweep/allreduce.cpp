// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/allreduce.hpp"

#include <fmt/format.h>

namespace banyan::sweep {

finding judge_allreduce(const result<reduction>& r, std::uint32_t wanted, std::uint32_t gpus) {
    constexpr double giga = 1e9;
    if (gpus == 1 || (r && r->gpus == 1 && gpus == 0))
        return fit("left out: the node has one GPU, and an all-reduce of one is no check");
    if (r && r->gpus == 1)
        return unknown({errc::unavailable, fmt::format("CUDA has 1 GPU, expected {}", gpus), {}});
    if (!r) return r.error().code == errc::conflict ? unfit(r.error().text()) : unknown(r.error());
    finding out;
    for (const auto& gpu : r->wrong)
        add(out, unfit(fmt::format("GPU {} has wrong sums after an all-reduce", gpu)));
    const auto what = fmt::format("{:.1f} GB/s by an all-reduce over {} GPUs, expected {}",
                                  r->bus_bytes_per_second / giga, r->gpus, wanted);
    add(out, r->bus_bytes_per_second >= wanted * giga ? fit(what) : unfit(what));
    out.figures["allreduce_bytes_per_second"] = r->bus_bytes_per_second;
    return out;
}

}  // namespace banyan::sweep
