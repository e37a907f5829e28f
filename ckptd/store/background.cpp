// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/background.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace banyan::ckpt {
namespace {

// A tenth of what a thread of the training gets where they compete: with less, a node whose cores are all
// busy would never have its state in storage.
constexpr int background_nice = 10;

// linux/ioprio.h is not for C++.
constexpr int this_thread = 1;                   // IOPRIO_WHO_PROCESS
constexpr int last_best_effort = (2 << 13) | 7;  // IOPRIO_CLASS_BE and its last level

}  // namespace

void lower_priority() {
    errno = 0;
    const int now = ::getpriority(PRIO_PROCESS, 0);  // of the calling thread, on Linux
    if (now < background_nice && errno == 0) ::setpriority(PRIO_PROCESS, 0, background_nice);
    // The idle class would wait for ever for a disk that others keep busy.
    ::syscall(SYS_ioprio_set, this_thread, 0, last_best_effort);
}

}  // namespace banyan::ckpt
