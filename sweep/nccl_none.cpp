// SPDX-License-Identifier: BSD-3-Clause
//
// In the place of nccl.cpp where NCCL's headers were not there to build with.
#include "sweep/allreduce.hpp"

namespace banyan::sweep {

bool built_with_nccl() { return false; }

result<reduction> measure_allreduce(const std::string&, const std::string&, std::size_t,
                                    std::chrono::steady_clock::duration) {
    return fail(errc::unavailable, "this banyan-sweep was not built with NCCL",
                "build it where nccl.h is (cmake -DBANYAN_NCCL=FOLDER), or take allreduce out of [sweep]");
}

}  // namespace banyan::sweep
