// SPDX-License-Identifier: BSD-3-Clause
//
// What was acknowledged and by whom it was held, and whether it was kept.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "test/simulator/machines.hpp"

namespace banyan::ckpt::simulator {

class books {
  public:
    using assignment = std::vector<std::uint32_t>;  ///< slot -> node

    /// A rank saves on a node.
    void saved(const copy_key& key, std::uint32_t rank, std::uint32_t on, const machines& m) {
        saved_[{key, rank}] = {on, m.nodes()[on].life};
    }
    /// A copy was damaged: nobody is blamed for its loss.
    void damaged(std::uint32_t on, const copy_key& key) { damaged_.insert({on, key}); }
    bool is_damaged(std::uint32_t on, const copy_key& key) const { return damaged_.contains({on, key}); }

    /// A daemon has heard of a commit that nobody had heard of: true. Throws breach when it is not so.
    bool acknowledge(const agreement::agreement& a, agreement::level safety, const machines& m);
    /// Where what was acknowledged may be for a launch to begin from it.
    struct reach {
        std::set<std::uint32_t> nodes;
        /// What one of these has said to be replicated is looked for on `silent`, too.
        std::optional<copy_key> replicated;
        std::set<std::uint32_t> silent;
    };
    /// All ranks begin from `key`: throws breach when something newer was acknowledged and has survived
    /// within reach, or when what some of `heard` know to be replicated is not known any more. True when
    /// something newer has not survived.
    bool begin(const std::optional<copy_key>& key, const agreement::agreement& a, const reach& within,
               const assignment& heard, const machines& m);
    /// A silent node's part in what was acknowledged in launches before `generation` is not counted on.
    void give_up(std::uint32_t node, std::uint64_t generation);
    /// What is replicated has its copies anew.
    void renew(const machines& m);
    /// What all were to begin from has reached memory on all ranks: what is older has been overtaken there.
    void reached_all(const std::optional<copy_key>& key, const machines& m);
    std::optional<copy_key> newest(agreement::level safety) const;
    /// The newest that was acknowledged is whole, and would not be without what `node` holds.
    std::optional<copy_key> needs(std::uint32_t node, const machines& m) const;
    /// It was acknowledged once, and all of it is there, on nodes of `among`.
    bool is_whole(const copy_key& key, const std::set<std::uint32_t>& among, const machines& m) const;

  private:
    struct entry {
        copy_key key;
        std::vector<std::set<std::pair<std::uint32_t, std::uint64_t>>> holders;  // state -> (node, life)
    };
    static entry look(const copy_key& key, const machines& m);
    static bool is_held(const copy_key& key, std::uint32_t rank, const machines& m);
    bool survived(const entry& e, const std::set<std::uint32_t>& nodes, const machines& m) const;

    std::array<std::optional<entry>, 2> newest_;  // by level
    std::map<std::pair<copy_key, std::uint32_t>, std::pair<std::uint32_t, std::uint64_t>> saved_;
    std::set<std::pair<std::uint32_t, copy_key>> damaged_;
    std::set<copy_key> acknowledged_;
};

}  // namespace banyan::ckpt::simulator
