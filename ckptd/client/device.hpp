// SPDX-License-Identifier: BSD-3-Clause
//
// Regions in GPU memory. The driver is used only when the process has loaded it already: one that has not
// has no device pointers. Without it, or when the build had no cuda.h, every pointer is host memory.
#pragma once

#include <cstddef>

#include "common/result.hpp"

namespace banyan::ckpt::device {

/// Whether `ptr` is memory of a GPU (not managed or pinned host memory, which memcpy reads as well).
bool owns(const void* ptr);
result<void> copy_to_host(void* host, const void* gpu, std::size_t bytes);
result<void> copy_from_host(void* gpu, const void* host, std::size_t bytes);
/// Pins the buffers for fast copies from the GPU that has `gpu`, in pieces of at most 1 GiB. Without success
/// copies are slower, nothing else.
void pin(void* host, std::size_t bytes, const void* gpu);
void unpin(void* host, std::size_t bytes);

}  // namespace banyan::ckpt::device
