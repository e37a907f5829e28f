// SPDX-License-Identifier: BSD-3-Clause
#include "native/pending.hpp"

namespace banyan::python {

// A tensor in a GPU's memory is copied by the library on a stream of its own that waits for the caller's:
// that needs bck_checkpoint_begin, and this thread for the memory of the host alone.
pending::pending(std::uint64_t step, const regions& what) {
    thread_ = std::thread([this, step, &what] {
        answer_ = answer_of(lib().bck_checkpoint_of(step, what.data(), what.size()));
        done_ = true;
    });
}

pending::~pending() {
    if (thread_.joinable()) thread_.join();
}

answer pending::wait() {
    if (thread_.joinable()) thread_.join();
    return answer_;
}

}  // namespace banyan::python
