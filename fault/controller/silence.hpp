// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes whose agent is gone. An agent that was restarted is back in a moment; where it is not, the node's
// other daemons are asked. Only a node on which none of them answers is called silent: what could not be
// looked at is not. One task for each agent that is gone.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/clock.hpp"
#include "common/log.hpp"
#include "common/wire_async.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

class silence_watch {
  public:
    /// `words` says what was asked, and what came.
    using report = std::function<void(const std::string& node, const std::string& words)>;

    /// The daemons that listen on a node: slurmd's port comes from Slurm. `at_once`: those that are gone
    /// within so long are gone together.
    silence_watch(asio::io_context& io, asio::thread_pool& pool, cluster& slurm, std::uint16_t ckptd_port,
                  report to, std::chrono::milliseconds at_once = std::chrono::minutes(10));

    /// The connection of the node's agent ended. `agents`: so many there are in the cluster.
    void gone(const std::string& node, std::size_t agents);
    void back(const std::string& node);

  private:
    enum class reply : std::uint8_t { unknown, none, refused, yes };  ///< unknown: it could not be asked
    struct answers {
        reply slurmd = reply::unknown, ckptd = reply::unknown;
        bool alive() const { return slurmd == reply::yes || ckptd == reply::yes; }
        bool looked() const { return alive() || (slurmd != reply::unknown && ckptd != reply::unknown); }
        bool host_is_up() const { return slurmd == reply::refused || ckptd == reply::refused; }
    };

    task<void> follow(std::string node);
    task<answers> ask(node_status where);
    task<reply> knock(asio::ip::address address, std::uint16_t port);
    bool too_many() const;
    void note(const std::string& node, const answers& heard);

    asio::io_context& io_;
    asio::thread_pool& pool_;
    cluster& slurm_;
    std::uint16_t ckptd_port_;
    report report_;
    std::chrono::milliseconds at_once_;
    // Those that are not back: when the connection ended, or, while it is followed, when the node was last
    // found not to answer. What is longer ago than at_once_ says nothing of the others.
    std::map<std::string, clock::time_point> gone_;
    std::set<std::string> followed_;
    // Whose agent is here, or which answer without one: as long as there are any we have a network.
    std::set<std::string> there_;
    std::size_t agents_ = 0;
    log_limiter quiet_;
};

}  // namespace banyan::fault
