// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/allreduce.hpp"

#include <fmt/format.h>

namespace banyan::sweep {

finding judge_allreduce(const result<reduction>& r, std::uint32_t wanted) {
    constexpr double giga = 1e9;
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
