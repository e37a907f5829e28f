// SPDX-License-Identifier: BSD-3-Clause
//
// The copies of one save from GPUs to the host, on streams of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "ckptd/client/cuda.hpp"
#include "common/result.hpp"

namespace banyan::ckpt::device {

/// One thread at a time; another one than made it may copy.
class transfer {
  public:
    /// What is queued on a GPU when the first copy of it begins is in all of them: on whatever stream.
    transfer() = default;
    /// What is queued now on `stream` (null: the default stream), of the GPU that has the memory `gpu`, is in
    /// its copies, and nobody waits for what comes after. `gpu` null: as transfer().
    transfer(const void* gpu, void* stream);
    ~transfer();
    transfer(transfer&& other) noexcept;
    transfer& operator=(transfer&&) = delete;

    /// The memory may not change, nor go, before finish(). One that fails ends in finish() at the latest.
    result<void> copy(void* host, const void* gpu, std::size_t bytes);
    /// Until all copies have come.
    result<void> finish();

  private:
    struct lane {
        context of = nullptr;
        void* stream = nullptr;        ///< null: copies wait one for the other
        void* after = nullptr;         ///< event
        const void* memory = nullptr;  ///< some of that GPU
        bool ordered = false;
    };
    lane& lane_of(const driver& by, context of, const void* gpu);
    result<void> order(const driver& by, lane& l);

    std::vector<lane> lanes_;
    std::size_t bytes_ = 0;
};

}  // namespace banyan::ckpt::device
