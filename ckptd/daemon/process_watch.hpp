// SPDX-License-Identifier: BSD-3-Clause
//
// Tells once, at once, that a process has ended. The kernel's word, by the process's pidfd: a connection may
// live on in what it has forked. On the io_context's thread.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "ckptd/daemon/process.hpp"
#include "common/timer.hpp"

namespace banyan::ckpt {

class process_watch {
  public:
    /// `ended` is called from the loop, also where the process has ended already; never once this object is
    /// gone.
    process_watch(boost::asio::io_context& io, std::shared_ptr<const process> of,
                  std::function<void()> ended);
    ~process_watch();
    process_watch(const process_watch&) = delete;

  private:
    void look_again();
    void tell();

    const std::shared_ptr<const process> of_;
    std::function<void()> ended_;
    boost::asio::posix::stream_descriptor descriptor_;  ///< the process's own, lent
    timer timer_;                                       ///< where the kernel gives none
    const std::shared_ptr<const int> here_ = std::make_shared<const int>();
};

}  // namespace banyan::ckpt
