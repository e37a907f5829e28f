// SPDX-License-Identifier: BSD-3-Clause
#include "native/pending.hpp"

#include <unistd.h>

namespace banyan::python {

// A library that copies by itself reads a GPU's memory on a stream of its own, which waits for `stream`. The
// thread of another one is for the host's memory.
pending::pending(std::uint64_t step, const regions& what, std::uintptr_t stream) : process_(::getpid()) {
    if (lib().bck_checkpoint_begin) {
        begun_ = answer_of(
            lib().bck_checkpoint_begin(step, what.data(), what.size(), reinterpret_cast<void*>(stream)));
        is_open_ = begun_.code == BCK_OK;
        end_ = begun_;
        return;
    }
    thread_ = std::thread(
        [this, step, &what] { end_ = answer_of(lib().bck_checkpoint_of(step, what.data(), what.size())); });
}

// A child has its parent's object, but not the thread.
pending::~pending() {
    if (process_ == ::getpid())
        wait();
    else if (thread_.joinable())
        thread_.detach();
}

answer pending::wait() {
    if (process_ != ::getpid()) return {BCK_E_INVALID, "this save is the parent process's"};
    if (is_open_) {
        is_open_ = false;
        end_ = answer_of(lib().bck_checkpoint_end());
    }
    if (thread_.joinable()) thread_.join();
    return end_;
}

}  // namespace banyan::python
