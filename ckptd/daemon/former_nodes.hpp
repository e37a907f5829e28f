// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes of earlier launches of a job that are not in the one that begins: a requeue may have gone elsewhere,
// and the newest state be in their memory alone. The first slot's daemon asks them what they hold. What they
// say only adds; one that does not answer is not waited for long, for it may be why the job was started
// again, unless somebody knows that a step is not whole without it. docs/decisions/015.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ckptd/daemon/messenger.hpp"
#include "ckptd/daemon/reporter.hpp"

namespace banyan::ckpt {

class former_nodes {
  public:
    former_nodes(daemon_core& core, messenger& peers, reporter& users)
        : core_(core), peers_(peers), users_(users) {}

    /// Once every node of the launch has said what it holds: what the others hold. They end their launch with
    /// that. Where nothing of it is needed, who is silent is waited for for a moment only; one that is
    /// awaited is asked no sooner than a second after the last time. Null where nobody was asked: `look` is
    /// no longer the newest.
    task<std::optional<agreement::word_outside>> ask(session_ptr s, std::uint64_t look);
    /// To the user, of those that were asked last.
    void tell_of_silence(const session_ptr& s);
    /// Of which of the job's states such a node has checked copies ("": its own). It then ends its part in
    /// launches before this one. An error when it has not answered, or not for all of them.
    task<result<std::set<std::string>>> ask_of_all_states(session_ptr job, session_node node);

    /// To a daemon of the launch `generation`. It will rest on it: a launch of ours before that is over, for
    /// all states of the job. Without `s` the state that is asked for is not here.
    static json tell(const session_ptr& job, const session_ptr& s, std::uint64_t generation);

  private:
    struct inquiry;
    static std::set<std::string> states_in(const json& said);
    static void take_states(session& job, const json& said);
    static void take_nodes(const session& s, bool for_awaited, inquiry& of);
    task<void> ask_one(session_ptr s, std::shared_ptr<inquiry> of, std::size_t i);
    task<void> ask_some(session_ptr s, std::shared_ptr<inquiry> of);

    daemon_core& core_;
    messenger& peers_;
    reporter& users_;
};

}  // namespace banyan::ckpt
