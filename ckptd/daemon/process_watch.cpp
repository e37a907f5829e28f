// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/process_watch.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace banyan::ckpt {
namespace {

constexpr std::chrono::milliseconds look_every{250};

}  // namespace

process_watch::process_watch(boost::asio::io_context& io, std::shared_ptr<const process> of,
                             std::function<void()> ended)
    : of_(std::move(of)), ended_(std::move(ended)), descriptor_(io), timer_(io) {
    boost::system::error_code ec;
    if (of_->alive() && of_->fd() >= 0) descriptor_.assign(of_->fd(), ec);
    if (!descriptor_.is_open()) {
        look_again();
        return;
    }
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this, here = std::weak_ptr(here_)](boost::system::error_code failed) {
                               if (here.expired()) return;
                               failed ? look_again() : tell();
                           });
}

process_watch::~process_watch() {
    if (descriptor_.is_open()) descriptor_.release();
}

void process_watch::look_again() {
    timer_.expires_after(of_->alive() ? look_every : std::chrono::milliseconds(0));
    timer_.async_wait([this, here = std::weak_ptr(here_)](boost::system::error_code) {
        if (here.expired()) return;
        of_->alive() ? look_again() : tell();
    });
}

// Who is told may end this object. What has ended needs no descriptor, however long its memory is kept.
void process_watch::tell() {
    if (descriptor_.is_open()) descriptor_.release();
    of_->has_ended();
    const auto ended = std::exchange(ended_, nullptr);
    ended();
}

}  // namespace banyan::ckpt
