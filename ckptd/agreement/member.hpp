// SPDX-License-Identifier: BSD-3-Clause
//
// A daemon's part in the agreement on what a generation begins from. Pure: messages in, messages and orders
// out. One for each job and generation; not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "ckptd/agreement/messages.hpp"
#include "ckptd/agreement/shelf.hpp"

namespace banyan::ckpt::agreement {

class member {
  public:
    /// What the daemon has to do after a message.
    struct orders {
        std::optional<body> answer;    ///< to the coordinator
        std::optional<prepare> bring;  ///< the shards of its ranks; then brought()
        bool go = false;               ///< its ranks may begin, with released_with()
    };

    /// `life`: a number of this life of the daemon. `forgetful`: it has begun after the generation and kept
    /// nothing from before.
    explicit member(std::uint64_t life = 0, bool forgetful = false) : life_(life), forgetful_(forgetful) {}

    orders on(const collect& m, const shelf& copies);
    orders on(const prepare& m, const shelf& copies);
    orders on(const release& m);
    /// The end of `bring`: the ranks for which nothing could be brought. Answers nothing when a higher ballot
    /// has been promised meanwhile.
    orders brought(const ballot& number, std::vector<std::uint32_t> failed);

    bool is_forgetful() const { return forgetful_; }
    /// The daemon was started again with fields(): what was to be brought will not come.
    void recall(std::uint64_t life) {
        life_ = life;
        bringing_.reset();
    }
    /// As shelf::fields.
    template <class Member, class F>
    static void fields(Member& m, F&& f) {
        f("promised", m.promised_);
        f("accepted", m.accepted_);
        f("key", m.key_);
        f("replicated", m.replicated_);
        f("released", m.released_);
        f("forgetful", m.forgetful_);
        f("all_heard", m.all_heard_);
    }

    bool has_released() const { return released_; }
    /// Precondition of both: has_released().
    const std::optional<copy_key>& released_with() const { return key_; }
    const std::optional<copy_key>& replicated() const { return replicated_; }
    /// As in release, of any attempt that has ended this round.
    bool has_heard_all() const { return all_heard_; }

  private:
    std::optional<body> outbid_by(const ballot& number) const;
    inventory what_i_hold(const shelf& copies) const;

    ballot promised_;
    std::optional<ballot> accepted_;  // in which `key_` was prepared
    std::optional<copy_key> key_, replicated_;
    std::optional<prepare> bringing_;
    bool released_ = false;
    std::uint64_t life_;
    bool forgetful_;
    bool all_heard_ = false;
};

}  // namespace banyan::ckpt::agreement
