// SPDX-License-Identifier: BSD-3-Clause
//
// Regions in GPU memory. The driver is used only when the process has loaded it already: one that has not
// has no device pointers. Without it every pointer is host memory.
#pragma once

#include <cstddef>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::ckpt::device {

/// Whether `ptr` is memory of a GPU (not managed or pinned host memory, which memcpy reads as well).
bool owns(const void* ptr);
/// Whether the process has loaded a driver by which this can be told.
bool has_driver();
/// Whether the process has something at the first and the last of these bytes. Says nothing of who may read
/// it.
bool is_mapped(const void* ptr, std::size_t bytes);
result<void> copy_to_host(void* host, const void* gpu, std::size_t bytes);
result<void> copy_from_host(void* gpu, const void* host, std::size_t bytes);

/// Host memory that is pinned as long as this lives, which makes copies fast; where it cannot be pinned they
/// are slower, nothing else. One registration for all of it: the driver refuses a copy whose host side
/// reaches from one registration into another. The memory may not be unmapped, or moved, meanwhile: the
/// driver would copy to and from the pages that were there before.
class pinned {
  public:
    /// For all GPUs; `gpu` is memory of one of them.
    pinned(void* host, std::size_t bytes, const void* gpu);
    ~pinned();
    pinned(pinned&& other) noexcept;
    pinned& operator=(pinned&&) = delete;

  private:
    void* host_ = nullptr;  ///< null: it is not pinned
    void* context_ = nullptr;
    pid_t by_;  ///< a child of fork() has none of it
};

}  // namespace banyan::ckpt::device
