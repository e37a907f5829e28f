// SPDX-License-Identifier: BSD-3-Clause
//
// A few nodes on one host for the tests: a private munged, one banyan-ckptd per node on 127.0.2.x, rank
// processes that use libbanyan_ckpt for real. Everything lives in one temporary directory and ends with this
// object.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "answer.hpp"
#include "ckptd/protocol/local_protocol.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "network.hpp"
#include "state.hpp"
#include "test/idle_clock.hpp"

namespace ckptd_test {

using namespace std::chrono_literals;
using nlohmann::json;

using banyan::testing::eventually;
using banyan::testing::within;
/// The time of all clusters.
banyan::testing::idle_clock& idle_time();
/// So much of it passes.
inline void pass(std::chrono::milliseconds time) { banyan::clock::sleep_for(time); }

/// What a rank says that attaches by hand, with `more` fields.
json attach_of(std::uint64_t job, std::int64_t rank, std::uint32_t world, const json& bytes,
               const json& more = json::object());

class cluster {
  public:
    struct options {
        int nodes = 2;
        std::string extra;  ///< more lines of [ckptd]
        std::vector<std::string> arguments;
        /// node -> what its daemon is run by: env, unshare
        std::map<int, std::vector<std::string>> before = {};
        network* net = nullptr;  ///< its nodes instead of 127.0.2.x; outlives the cluster
    };
    explicit cluster(options o);
    ~cluster();
    cluster(const cluster&) = delete;

    const std::string& dir() const { return dir_; }
    std::string name(int node) const { return "n" + std::to_string(node); }
    /// What the node's daemon, and its keeper, have written so far.
    std::string log(int node) const;
    std::string socket(int node) const { return dir_ + "/" + name(node) + ".sock"; }
    std::uint16_t port() const { return port_; }
    /// Where its fault agent would listen.
    std::string agent(int node) const { return dir_ + "/agent-" + name(node) + ".sock"; }
    std::string addr(int node) const {
        return options_.net ? options_.net->addr(node) : "127.0.2." + std::to_string(10 * base_ + node);
    }
    pid_t pid(int node) const { return daemons_.at(node); }
    bool start(int node);
    void kill(int node, int signal);
    json status(int node) const;
    /// The session of `job` in status, or null.
    json session(int node, std::uint64_t job) const;
    json counter(int node, std::uint64_t job, const char* name) const {
        return session(node, job)["counters"][name];
    }

    /// `ranks_per_node` ranks on each of nodes 1..active; the rest are spares.
    banyan::ckpt::session_request request(std::uint64_t job, int active, int ranks_per_node,
                                          const std::string& storage, std::uint64_t flush) const;
    /// Opens the session on all nodes that live; fails the test when one refuses. Returns the warnings.
    std::string open(banyan::ckpt::session_request r) const;
    /// A new step of the job on `nodes`, in slot order; fails the test when a daemon refuses.
    void new_step(std::uint64_t job, std::uint32_t step, const std::vector<int>& nodes) const;
    /// What the ranks have printed to standard error, 1 MiB of it.
    std::string printed() const;
    /// How often `what` is in that.
    std::size_t printed(const std::string& what) const;

  private:
    std::string dir_;
    std::uint16_t port_ = 0;
    int base_ = 1;
    pid_t munged_ = -1;
    std::map<int, pid_t> daemons_;
    options options_;
};

/// A rank in a process of its own, on a node. The process runs one line of commands and reports one line
/// each: what the test may ask is what rank_main.cpp understands.
class rank_process {
  public:
    rank_process(const cluster& c, int node, std::uint64_t job, std::uint32_t rank, std::uint32_t world,
                 std::size_t bytes);
    ~rank_process();
    rank_process(rank_process&& o) noexcept;
    /// Sends a command and returns the answer; "" when the process is gone.
    answer ask(const std::string& command);
    void say(const std::string& command);
    answer hear();
    void kill();
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
};

constexpr std::size_t state_bytes = 9'500'003;  // three chunks, the last one ragged

/// The ranks of a job, `per_node` on each of `nodes`.
std::vector<rank_process> start_ranks(const cluster& c, std::uint64_t job, const std::vector<int>& nodes,
                                      int per_node = 1, std::size_t bytes = state_bytes);
/// The same command to all, answers in order.
std::vector<answer> ask_all(std::vector<rank_process>& ranks, const std::string& command);
template <class Wanted>
void all_are(const std::vector<answer>& answers, const Wanted& wanted) {
    for (const auto& a : answers) CHECK(a == wanted);
}

}  // namespace ckptd_test
