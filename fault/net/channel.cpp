// SPDX-License-Identifier: BSD-3-Clause
#include "fault/net/channel.hpp"

#include <boost/asio/detached.hpp>
#include <netinet/tcp.h>

namespace banyan::fault {

channel::channel(asio::ip::tcp::socket socket) : socket_(std::move(socket)), wake_(socket_.get_executor()) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    // A peer that is gone without a word must not keep us believing for minutes.
    boost::system::error_code ignored;
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    const unsigned patience_ms = 5000;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms);
}

bool channel::send(message type, nlohmann::json meta) {
    if (!open_ || queue_.size() >= max_queued) return false;
    queue_.emplace_back(type, std::move(meta));
    wake_.cancel();
    return true;
}

void channel::start() {
    asio::co_spawn(socket_.get_executor(), write_loop(shared_from_this()), asio::detached);
}

void channel::close() {
    if (!open_) return;
    open_ = false;
    boost::system::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
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
        const auto sent = co_await wire::write_frame(self->socket_, code(type), std::move(meta));
        if (!sent) self->close();
    }
}

}  // namespace banyan::fault
