// SPDX-License-Identifier: BSD-3-Clause
//
// The controller's side of the agents: accepts them (munge), hands on what they say, asks them to seal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/log.hpp"
#include "common/peer/listener.hpp"
#include "fault/config.hpp"
#include "fault/controller/agent_clock.hpp"
#include "fault/event.hpp"
#include "fault/history/history.hpp"
#include "fault/metrics/metrics.hpp"
#include "fault/net/channel.hpp"

namespace banyan::fault {

/// What came of asking several nodes to seal.
struct seal_report {
    std::size_t asked = 0, answered = 0;
    std::vector<std::string> silent;              ///< not connected, or no answer in time
    std::map<std::uint64_t, std::int64_t> steps;  ///< job -> oldest of the nodes' newest steps
    bool replicated = true;
    std::string text() const;
};

/// What the agent of a node found when it was asked for a sweep.
struct sweep_report {
    std::string verdict = "unknown", text;
};

struct agent_info {
    std::string boot_id, address;
    std::optional<std::string> nvlink_domain;  ///< empty: its GPUs are in none; none: it has not told
    std::int64_t since_ms = 0, heard_ms = 0;
    std::uint64_t gpus = 0, queued = 0, dropped = 0, lost = 0, events = 0;
    bool connected = false;
    agent_clock clock;
};

class hub {
  public:
    struct callbacks {
        std::function<std::optional<cursor>(const std::string& node)> cursor_of;
        /// Of the node, cards of whose lost ports an incident is open, and the ports that are known by name.
        std::function<std::vector<std::pair<std::string, std::vector<std::string>>>(const std::string& node)>
            lost_ports;
        /// Calls `kept` once they are; without that the agent sends them again.
        std::function<task<void>(std::string node, std::vector<event> events, std::function<void()> kept)>
            events;
        std::function<void(std::string node, cursor where)> moved;
        std::function<void(std::string node, std::int64_t at_ms, std::string text)> self_sealed;
        /// The node's agent is here, or its connection ended.
        std::function<void(const std::string& node, bool here)> heard;
    };

    hub(asio::io_context& io, asio::thread_pool& pool, const config& settings,
        std::shared_ptr<metrics> counters, callbacks calls);

    result<void> listen(const std::string& address, std::uint16_t port);
    /// Asks the agents of `nodes`; back when all answered or after `timeout`. job 0 = all jobs.
    task<seal_report> seal(std::vector<std::string> nodes, std::uint64_t job,
                           std::chrono::milliseconds timeout);
    /// The newest training step of `job` that is complete, as agents of `nodes` say within a second.
    task<std::optional<std::int64_t>> newest_step(std::vector<std::string> nodes, std::uint32_t job);
    /// Asks the node's agent for a sweep, for incident `number`; unknown where it does not come or does not
    /// answer, none where it was given up.
    task<std::optional<sweep_report>> sweep(std::string node, std::uint64_t number);
    /// Nobody waits any longer for a sweep for incident `number`.
    void give_up_sweep(std::uint64_t number);
    const std::map<std::string, agent_info>& agents() const { return agents_; }
    /// The boot that a node runs now, as its agent said; empty when unknown.
    std::string boot_of(const std::string& node) const;
    /// The NVLink domain of its GPUs, as its agent said last; empty: none, or not known.
    std::string nvlink_domain_of(const std::string& node) const;
    bool is_here(const std::string& node) const { return links_.contains(node); }

  private:
    struct session {
        std::string node;
        std::shared_ptr<channel> link;
    };
    struct sweeping {
        std::string node;
        std::uint64_t number = 0;  // the incident that it is for
        bool given_up = false;
        std::optional<sweep_report> report;
        std::shared_ptr<timer> done;
    };
    struct sealing {
        std::set<std::string> waiting;
        seal_report report;
        std::shared_ptr<timer> done;
    };

    task<void> serve(std::shared_ptr<peer::channel> connection);
    task<result<void>> welcome(std::shared_ptr<channel> link, std::string node);
    task<void> take_frame(std::shared_ptr<channel> link, std::string node, wire::frame frame);
    bool ask_for_sweep(const std::string& node, std::uint64_t request);
    void take_swept(const std::string& node, const nlohmann::json& meta);
    void take_sealed(const std::string& node, const nlohmann::json& meta);

    asio::io_context& io_;
    asio::thread_pool munge_{2};  // thousands of agents come at once when the controller starts again
    std::shared_ptr<metrics> metrics_;
    callbacks calls_;
    peer::listener listener_;
    std::map<std::string, std::shared_ptr<channel>> links_;
    std::set<std::shared_ptr<channel>> unacknowledged_;  // they sent events; one batch at a time
    std::map<std::string, agent_info> agents_;
    std::map<std::uint64_t, sealing> sealings_;
    std::map<std::uint64_t, sweeping> sweepings_;
    const std::chrono::milliseconds sweep_timeout_, agent_within_;
    std::uint64_t next_request_;
};

}  // namespace banyan::fault
