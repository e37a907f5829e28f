// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes that had a part in earlier launches of the job, and may keep what the next one has to begin from:
// who is known, whom that one asks, and when they are forgotten. Pure; not thread-safe. docs/decisions/015.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ckptd/agreement/messages.hpp"

namespace banyan::ckpt::agreement {

class earlier_nodes {
  public:
    using addresses = std::map<std::string, std::string>;  ///< by name

    /// No more than most_outside.
    void add(const node_address& n) {
        if (nodes_.size() < most_outside) nodes_.try_emplace(n.name, n.addr);
    }
    void add_all(const addresses& all) {
        for (const auto& [name, addr] : all) add(node_address{name, addr});
    }
    /// The claim of the job's directory tells of this launch.
    void note_claim(std::uint64_t generation) { claimed_ = claimed_ < generation ? generation : claimed_; }

    /// The job is started again. What runs here is the launch before, and how safe its steps become says
    /// nothing of what the next one needs.
    void renew() { awaits_launch_ = true; }
    void open() { awaits_launch_ = false; }
    /// The launch that runs needs them no more. True when there were some, and none are known now.
    bool forget();

    const addresses& nodes() const { return nodes_; }
    std::vector<node_address> list() const;
    /// Fewer than there may be: each that was added is known.
    bool are_all() const { return nodes_.size() < most_outside; }
    /// The newest launch that a claim tells of; 0 where none does.
    std::uint64_t claimed() const { return claimed_; }

    /// Kept as agreement::fields; the nodes are kept with the session.
    template <class Nodes, class F>
    static void fields(Nodes& n, F&& f) {
        f("awaits_launch", n.awaits_launch_);
    }

  private:
    addresses nodes_;
    std::uint64_t claimed_ = 0;
    bool awaits_launch_ = false;
};

/// Each address once, under whatever names, and none of `members`: whom the coordinator asks what they hold.
std::vector<node_address> whom_to_ask(const std::vector<node_address>& members,
                                      const std::vector<node_address>& known);

}  // namespace banyan::ckpt::agreement
