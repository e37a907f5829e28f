// SPDX-License-Identifier: BSD-3-Clause
//
// Work that must not disturb the training: the lowest priority on the processor and on the disk, for one
// thread, however the daemon was started.
#pragma once

namespace banyan::ckpt {

/// For the rest of this thread's life. Where the kernel refuses, nothing changes.
void lower_priority();

}  // namespace banyan::ckpt
