// SPDX-License-Identifier: BSD-3-Clause
//
// The Unix socket that banyan-fault asks. Anybody on the host may look; only root and the daemon's own user
// may change something.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "fault/controller/controller.hpp"

namespace banyan::fault {

class admin_server {
  public:
    admin_server(asio::io_context& io, controller& what);
    ~admin_server();
    result<void> listen(const std::string& path);

  private:
    using socket = asio::local::stream_protocol::socket;
    task<void> accept();
    task<void> serve(std::shared_ptr<socket> peer);
    task<result<nlohmann::json>> answer(nlohmann::json meta, uid_t uid);
    task<nlohmann::json> follow(std::uint64_t revision);
    nlohmann::json list(std::size_t most) const;
    nlohmann::json status() const;
    nlohmann::json agents() const;

    asio::io_context& io_;
    controller& controller_;
    asio::local::stream_protocol::acceptor acceptor_;
    std::string path_;
    std::size_t connections_ = 0;
};

}  // namespace banyan::fault
