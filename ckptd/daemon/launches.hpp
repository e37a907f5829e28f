// SPDX-License-Identifier: BSD-3-Clause
//
// A job's launch at this daemon, and what the agreement orders. A launch is announced by the node's
// slurmstepd and comes into force when a process of it asks for its rank, here or on another node: a step of
// the job in which nobody does, a helper beside the training, changes nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/former_nodes.hpp"
#include "ckptd/daemon/protector.hpp"
#include "ckptd/daemon/restorer.hpp"

namespace banyan::ckpt {

/// What another daemon has said of what hinders it.
void take_hindrance(const session_ptr& s, std::uint32_t slot, const json& said);

class launches {
  public:
    struct parts {
        messenger& peers;
        reporter& users;
        directories& dirs;
        former_nodes& former;
        protector& copies;
        flusher& flushes;
        restorer& restores;
    };
    launches(daemon_core& core, const parts& p) : core_(core), to_(p) {}

    /// A job's session, with nothing in it yet.
    session_ptr make_session();
    /// A state of a job that has entered a launch: in that launch, too. It is made where it is not there;
    /// refused where the name is none, or the job has as many as it may. named_states.cpp.
    result<session_ptr> open_state(const session_ptr& job, const std::string& name);
    /// The launch that processes of `step` belong to; of the newest step where they do not say.
    result<std::uint64_t> launch_of(const session& s, std::optional<std::uint32_t> step) const;
    /// Puts an announced launch in force, for the job and all its states. Refused while a process of an older
    /// one lives here; `but` does not count.
    task<result<void>> enter(session_ptr job, std::uint64_t generation, std::uint64_t but);
    /// Messages of another daemon's agreement on the job, or on the state of it that `meta` names.
    task<answer_meta> on_agree(session_ptr job, std::string node, json meta, std::vector<std::byte> packed);
    /// At the first slot: tells the agreement what storage holds, as soon as that is known. A look before
    /// this one is void.
    void look_at_storage(const session_ptr& s);
    /// Says again what may have got lost, and what everybody waits for.
    void watch(const session_ptr& s);
    /// Those that former nodes hold something of.
    void open_former_states(const session_ptr& job);

  private:
    std::shared_ptr<job_agreement> make_agreement(const std::weak_ptr<session>& of);
    void open_launch(const session_ptr& s, std::uint64_t generation);
    /// What the state has of its job, where the job is in a launch that the state is not in yet.
    void follow(const session_ptr& job, const session_ptr& s);
    /// Its directory.
    task<void> prepare_state(session_ptr s);
    /// What this daemon says of it with its answers.
    json hindrance_of(const session_ptr& s) const;
    void on_begin(const session_ptr& s);
    void tell_of_given_up(const session_ptr& s);
    void on_changed(const session_ptr& s);
    task<void> enter_announced(session_ptr s, std::uint64_t generation);
    task<void> look(session_ptr s, std::uint64_t number);
    task<void> look_in_storage(session_ptr s, std::uint64_t number);
    /// The former nodes alone, when what was heard of them, or why they were not asked, is void.
    task<void> ask_former(session_ptr s, std::uint64_t number);
    /// Without `stored` as before.
    task<void> tell_what_there_is(session_ptr s, std::uint64_t number,
                                  std::optional<std::vector<copy_key>> stored);
    /// An error where another job that lives has it.
    task<result<void>> own_directory(session_ptr s, std::uint64_t number);
    void pass_over_damaged(const session_ptr& s, const std::vector<std::string>& damaged);
    /// Nothing may begin from there, nor from anything else: what is there is not known to be nothing.
    void refuse_storage(const session_ptr& s, const error& why);

    daemon_core& core_;
    const parts to_;
};

}  // namespace banyan::ckpt
