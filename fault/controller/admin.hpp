// SPDX-License-Identifier: BSD-3-Clause
//
// The Unix socket that banyan-fault asks. Anybody on the host may look at incidents and agents, but not at
// the log lines behind them; only root and the daemon's own user may see those and change something. Each
// user has a share of it (caller_limits.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "common/wire_async.hpp"
#include "fault/controller/caller_limits.hpp"
#include "fault/controller/controller.hpp"
#include "fault/incident/filter.hpp"

namespace banyan::fault {

class admin_server {
  public:
    admin_server(asio::io_context& io, controller& what);
    ~admin_server();
    result<void> listen(const std::string& path);

  private:
    using socket = asio::local::stream_protocol::socket;
    task<void> accept();
    class guard;
    task<void> serve(std::shared_ptr<socket> peer);
    bool let_in(uid_t uid);
    task<void> turn_away(std::shared_ptr<socket> peer, uid_t uid);
    task<void> converse(std::shared_ptr<socket> peer, uid_t uid);
    task<result<wire::frame>> hear(std::shared_ptr<socket> peer, uid_t uid);
    task<void> wait_turn(uid_t uid);
    task<nlohmann::json> respond(nlohmann::json meta, uid_t uid);
    task<result<nlohmann::json>> answer(nlohmann::json meta, uid_t uid);
    task<result<nlohmann::json>> follow(std::uint64_t revision, uid_t uid, incident_sieve wanted);
    nlohmann::json list(uid_t uid, const incident_sieve& wanted);
    nlohmann::json status() const;
    nlohmann::json agents(uid_t uid);

    asio::io_context& io_;
    controller& controller_;
    asio::local::stream_protocol::acceptor acceptor_;
    std::string path_;
    caller_limits callers_;
    std::map<std::uint64_t, std::shared_ptr<socket>>
        idle_;  ///< of users, the one that is it for longest first
    std::uint64_t next_idle_ = 0;
    log_limiter quiet_;
};

}  // namespace banyan::fault
