// SPDX-License-Identifier: BSD-3-Clause
#include "fault/net/channel.hpp"

#include <boost/asio/detached.hpp>

namespace banyan::fault {

channel::channel(std::shared_ptr<peer::channel> connection)
    : peer_(std::move(connection)), wake_(peer_->executor()) {
    wake_.expires_at(timer::time_point::max());
}

bool channel::send(message type, nlohmann::json meta) {
    if (!open_ || queue_.size() >= max_queued) return false;
    queue_.emplace_back(type, std::move(meta));
    wake_.cancel();
    return true;
}

void channel::start() { asio::co_spawn(peer_->executor(), write_loop(shared_from_this()), asio::detached); }

void channel::close() {
    if (!open_) return;
    open_ = false;
    peer_->close();
    wake_.cancel();
}

task<void> channel::write_loop(std::shared_ptr<channel> self) {
    while (self->open_) {
        if (self->queue_.empty()) {
            co_await self->wake_.async_wait(as_result);
            continue;
        }
        auto [type, meta] = std::move(self->queue_.front());
        self->queue_.pop_front();
        const auto sent = co_await self->peer_->write_frame(code(type), std::move(meta));
        if (!sent) self->close();
    }
}

}  // namespace banyan::fault
