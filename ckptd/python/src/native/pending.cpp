// SPDX-License-Identifier: BSD-3-Clause
#include "native/pending.hpp"

#include <unistd.h>

namespace banyan::python {

pending::pending(std::uint64_t step, const regions& what, std::uintptr_t stream) : process_(::getpid()) {
    begun_ = answer_of(
        lib().bck_checkpoint_begin(step, what.data(), what.size(), reinterpret_cast<void*>(stream)));
    is_open_ = begun_.code == BCK_OK;
    ended_ = begun_;
}

// A forked child has its parent's object, and not the save.
pending::~pending() {
    if (process_ == ::getpid()) end();
}

answer pending::end() {
    if (process_ != ::getpid()) return {BCK_E_INVALID, "this save is the parent process's"};
    if (is_open_) {
        is_open_ = false;
        ended_ = answer_of(lib().bck_checkpoint_end());
    }
    return ended_;
}

}  // namespace banyan::python
