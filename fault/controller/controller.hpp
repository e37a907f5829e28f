// SPDX-License-Identifier: BSD-3-Clause
//
// The controller of a cluster: events become incidents, incidents are judged, and what the rules allow is
// done, once. One io_context, no locks; what blocks runs on two pools: the database's one thread
// (records.hpp), and a few for the rest.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/clock.hpp"
#include "fault/config.hpp"
#include "fault/controller/avoidance.hpp"
#include "fault/controller/fabric_incidents.hpp"
#include "fault/controller/followers.hpp"
#include "fault/controller/hearing.hpp"
#include "fault/controller/hub.hpp"
#include "fault/controller/job_rows.hpp"
#include "fault/controller/node_incidents.hpp"
#include "fault/controller/records.hpp"
#include "fault/controller/ruling.hpp"
#include "fault/controller/seen_events.hpp"
#include "fault/controller/silence.hpp"
#include "fault/controller/verification.hpp"
#include "fault/policy/limiter.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

/// Of what an administrator did to a node that was out.
constexpr const char* resume_verb = "resume";

class controller {
  public:
    controller(asio::io_context& io, asio::thread_pool& pool, config settings, policy rules,
               std::shared_ptr<metrics> counters, std::unique_ptr<cluster> slurm);
    /// Opens the history, listens, and goes on where an earlier controller stopped.
    result<void> start();
    /// Waits until nothing more is being written.
    void finish();

    /// What an agent sent. Events that were seen before change nothing. Back when what follows from them is
    /// begun; `kept` is called once they are in the history and the agent may forget them.
    task<void> take_events(std::string node, std::vector<event> events, std::function<void()> kept = {});

    // For the admin socket.
    struct view {
        const config& settings;
        const hub& agents;
        const limiter& limits;
        const policy& rules;
        const avoidance& avoided;
    };
    view look() const { return {config_, hub_, limiter_, rules_, avoidance_}; }
    const engine& incidents() const { return records_.incidents(); }
    task<result<std::optional<incident>>> find(std::uint64_t number) { return records_.find(number); }
    /// `resumed_ms`: only since its node was returned to service, at that time.
    task<result<void>> close(std::uint64_t number, std::string who,
                             std::optional<std::int64_t> resumed_ms = std::nullopt);
    task<result<std::string>> resume(std::string node, std::string who);
    void reset_breaker();
    /// Reads [fault] policy again. What is decided from now on is decided by it; a file that is wrong changes
    /// nothing. Says what came of it, in the log.
    task<void> reload_policy();
    /// About what was held back. In words, what comes of it.
    task<result<std::string>> rule_on(std::uint64_t number, ruling what, std::string who);

  private:
    // events.cpp
    /// Of one that no line of a node tells of.
    void hear(std::uint64_t number, change what);

    /// How a node goes out: of those jobs all leave it, or none.
    struct taking {
        bool leave = false;
        bool if_all_can = false;  ///< leave only while all can that have the node
        bool lost = false;        ///< it is dead already
        bool stuck = false;       ///< a job that ended has it still
        std::vector<job_status> jobs;
    };

    // actions.cpp
    task<void> act(std::uint64_t number);
    task<void> act_once(std::uint64_t number);
    /// Why it is not done. Who asks again and again, as a fault does that goes on, is told the same once.
    void say_once(std::uint64_t number, const std::string& what, std::string why);
    task<void> tell_users(std::uint64_t number, std::vector<job_status> jobs);
    task<void> seal_jobs(std::uint64_t number, std::vector<job_status> jobs);
    /// It became worse since it was judged, and what is done leaves the node in while more is asked for now.
    bool is_overtaken(std::uint64_t number);
    /// What the rules and limits say of it now; puts it into words, too. `restarted`: its node was, since.
    decision judge(incident& i, bool restarted = false);
    /// Changes `how` as it was in the end.
    task<bool> take_node_out(std::uint64_t number, taking& how);

    // held.cpp
    /// `by_half`: some of it is done, and its node counts as taken out.
    void put_off(std::uint64_t number, const std::string& what, std::string why, bool by_half = false);
    task<void> take_up_held();
    /// Of what waited: Slurm has the node in a later boot, and its agent is not here to say which.
    task<bool> was_restarted(std::uint64_t number);
    /// For what is so at this moment only: it is closed.
    void give_up(std::uint64_t number, const std::string& what, std::string why);

    asio::io_context& io_;
    asio::thread_pool& pool_;
    config config_;
    std::shared_ptr<metrics> metrics_;
    std::unique_ptr<cluster> slurm_;
    records records_;
    policy rules_;
    hearing hearing_;
    limiter limiter_;
    avoidance avoidance_;
    hub hub_;
    fabric_incidents fabric_;
    node_incidents of_nodes_;
    silence_watch silence_;
    verification_tools verifier_;
    followers followers_;
    job_rows job_rows_;
    std::set<std::uint64_t> acting_, again_;
    /// Of what is held back: when it is looked at again, whether or not there is room.
    std::map<std::uint64_t, clock::time_point> look_again_;
    const std::int64_t started_ms_;
    seen_events seen_;
    std::uint32_t nodes_ = 0;  // of the cluster; 0 until Slurm said
};

}  // namespace banyan::fault
