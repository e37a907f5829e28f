// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks begin from. The agreement chooses it; this brings the shards of this node's ranks from the
// nearest source, and hands them to the processes when all are to begin. restorer.cpp brings,
// restore_request.cpp hands over.
#pragma once

#include <optional>
#include <string>

#include "ckptd/daemon/local_client.hpp"
#include "ckptd/daemon/reporter.hpp"

namespace banyan::ckpt {

class restorer {
  public:
    restorer(daemon_core& core, messenger& peers, reporter& users)
        : core_(core), peers_(peers), users_(users) {}

    /// As the agreement orders; it hears which ranks' shards could not be brought.
    task<void> bring_all(session_ptr s, agreement::prepare what);
    /// A rank asks for its state.
    task<answer_meta> on_restore(client_ptr client, json meta);

    /// Why the ranks are not to wait any longer. The first slot's daemon decides it, and tells the others.
    std::optional<error> given_up(const session& s) const;

  private:
    enum class fetched {
        done,
        absent,   ///< damaged or gone there
        silent,   ///< the holder, or storage, does not answer
        no_room,  ///< on this node, for now
    };
    /// False: the shard is damaged or gone wherever it was.
    task<bool> bring(session_ptr s, std::uint32_t rank, agreement::choice from, agreement::ballot number);
    task<bool> take_local(session_ptr s, agreement::held what);
    /// Makes rank `as`'s own shard of what is here of another rank.
    task<bool> take_local_instead(session_ptr s, agreement::held what, std::uint32_t as);
    /// `as`: the rank that begins with it.
    task<fetched> take_from(session_ptr s, agreement::held what, std::uint32_t as, session_node holder);
    /// Whether the shard that rank `rank` is to begin with says of all that it holds which part of which
    /// tensor that is, if it was another rank's, or one of another number of ranks.
    task<bool> may_begin_with(session_ptr s, std::uint32_t rank, copy_key key, agreement::ballot number);
    /// `why`: of what is absent.
    task<fetched> take_from_storage(session_ptr s, agreement::held what, std::string* why);
    /// What is there cannot be taken for now: it is tried again, and the user is told.
    void note_hindrance(const session_ptr& s, hindrance::of what, const std::string& why);
    void tell_of_loss(const session_ptr& s, agreement::held what, const std::vector<session_node>& holders);
    task<result<copy_ptr>> room_for(session_ptr s, agreement::held what, std::uint64_t bytes);
    void settle(const session_ptr& s, const copy_ptr& c, const char* source);
    void give_back(const session_ptr& s, const copy_ptr& c);
    task<result<copy_ptr>> into_buffer(session_ptr s, std::uint32_t rank);

    daemon_core& core_;
    messenger& peers_;
    reporter& users_;
};

/// For the user, while a launch has not begun.
std::string what_is_waited_for(const session& s);

}  // namespace banyan::ckpt
