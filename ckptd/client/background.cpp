// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/background.hpp"

#include <exception>
#include <utility>

#include <banyan/ckpt.h>
#include <unistd.h>

namespace banyan::ckpt {

void background::start(std::function<outcome()> what) {
    cancel();
    auto started = std::make_unique<work>();
    started->thread = std::thread([to = started.get(), what = std::move(what)] {
        try {
            to->done = what();
        } catch (const std::exception& e) {
            to->done = {BCK_E_MEMORY, e.what()};
        }
    });
    by_ = ::getpid();
    under_way_ = std::move(started);
}

outcome background::wait() {
    const auto ended = std::move(under_way_);
    ended->thread.join();
    return std::move(ended->done);
}

void background::cancel() {
    if (!under_way_) return;
    if (by_ == ::getpid())
        wait();
    else
        static_cast<void>(under_way_.release());  // its thread is the parent's
}

}  // namespace banyan::ckpt
