// SPDX-License-Identifier: BSD-3-Clause
//
// Real daemons on one host for the checkpoint benchmarks: a munged of its own, one banyan-ckptd per node on
// an address of its own in 127/8, all below one temporary directory. Everything ends with the object.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "ckptd/protocol/protocol.hpp"
#include "common/result.hpp"

namespace banyan::bench {

class fleet {
  public:
    struct options {
        std::uint32_t nodes = 1;
        std::string extra = {};                                             ///< more lines of [ckptd]
        std::vector<std::pair<std::string, std::string>> environment = {};  ///< of the daemons
    };
    /// errc::unavailable: munged or a daemon did not start in time.
    static result<std::unique_ptr<fleet>> start(const options& o);
    ~fleet();
    fleet(const fleet&) = delete;
    fleet& operator=(const fleet&) = delete;

    const std::filesystem::path& dir() const { return dir_; }
    static std::string name(std::uint32_t node) { return "n" + std::to_string(node); }
    std::string socket(std::uint32_t node) const { return dir_ / (name(node) + ".sock"); }
    std::string address(std::uint32_t node) const;
    pid_t pid(std::uint32_t node) const { return daemons_.at(node); }
    /// Starts the node's daemon, again if it was killed.
    result<void> start_node(std::uint32_t node);
    void kill_node(std::uint32_t node);

    /// A job with `per_node` ranks on each of nodes 1 to `active`, whose state has `bytes`; each node's buddy
    /// is the next one. Nodes behind are spares.
    ckpt::session_request request(std::uint64_t job, std::uint32_t active, std::uint32_t per_node,
                                  std::uint64_t bytes) const;
    /// Opens the session on every node of the fleet.
    result<void> open(ckpt::session_request r) const;
    result<void> open_on(std::uint32_t node, ckpt::session_request r) const;
    /// Frees the job's memory everywhere.
    void close(std::uint64_t job) const;
    /// CPU time that the node's daemon has used so far, in seconds, threads that have ended included.
    double cpu(std::uint32_t node) const;

  private:
    fleet() = default;
    result<void> start_munged();
    std::filesystem::path dir_;
    options options_;
    std::uint16_t port_ = 0;
    pid_t munged_ = -1;
    std::map<std::uint32_t, pid_t> daemons_;
};

}  // namespace banyan::bench
