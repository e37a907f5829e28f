// SPDX-License-Identifier: BSD-3-Clause
//
// From a commit in memory to a commit in storage. The leader starts one flush after the other, each for all
// nodes and of the newest step that is due: it makes the folder, every node writes its ranks' shards into it
// and reports, the leader commits. For a node that does not answer its buddy writes. A flush that takes
// longer than a turn skips turns, and the next one is of the newest step again. No failure here stops
// training: it is said once and tried at the next turn. flusher.cpp and flush_gather.cpp have the leader's
// part, flush_part.cpp every node's, flush_now.cpp what goes to storage out of turn.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ckptd/daemon/directories.hpp"
#include "ckptd/daemon/reporter.hpp"

namespace banyan::ckpt {

class flusher {
  public:
    flusher(daemon_core& core, messenger& peers, reporter& users, directories& dirs)
        : core_(core), peers_(peers), users_(users), directories_(dirs) {}

    /// At the leader, after every commit: starts a flush when one is due and none is under way.
    void flush_if_due(const session_ptr& s);
    /// Has the newest complete step written to storage where the job flushes, and waits for it or its
    /// failure.
    task<void> store_newest(session_ptr s, std::function<bool()> goes_on, clock::time_point until);
    /// The same, of a step that may not be complete yet, or a newer one, behind the caller's back.
    void store_soon(const session_ptr& s, std::uint64_t step);
    /// At the leader: the newest step, though it is not its turn.
    answer_meta on_flush_now(const session_ptr& s);
    /// At the leader: a node's files, or why there are none.
    answer_meta take_files(const session_ptr& s, const std::string& node, const json& meta);
    /// The leader's word on a flush: write your part, or: it has failed.
    void on_flush_word(const session_ptr& s, const copy_key& key, const json& meta);
    /// Storage has that step.
    void apply_durable(const session_ptr& s, const copy_key& key);

  private:
    void begin(const session_ptr& s, bool now);
    task<void> lead(session_ptr s, bool now);
    task<void> store_wanted(session_ptr s);
    task<result<void>> flush_once(session_ptr s);
    task<result<void>> gather_files(session_ptr s, std::string folder);
    /// Slots that have not written their part, and whose daemon, or storage, does not answer.
    std::vector<std::uint32_t> silent_slots(const session_ptr& s);
    /// None of those that have not answered by now is waited for in the flushes to come, until it does.
    void note_hung(const session_ptr& s);
    static std::string does_not_reach(const session& s, const std::string& why);
    void tell_of_missing(const session_ptr& s, const copy_key& key);
    /// Has whoever keeps the copies of these slots write in their place; returns those for whom nobody can.
    std::vector<std::uint32_t> have_replaced(const session_ptr& s, const std::vector<std::uint32_t>& slots);
    task<result<void>> commit_files(session_ptr s, claim owner);

    /// This node's own part; with `instead_of` that of another slot, from the copies that are here.
    /// `alike`: as flush_progress has it.
    using lowest_ranks = std::map<std::string, std::uint32_t>;
    task<void> write_part(session_ptr s, copy_key key, std::string folder, lowest_ranks alike,
                          std::optional<std::uint32_t> instead_of = std::nullopt);
    task<result<json>> write_files(session_ptr s, copy_key key, std::string folder, lowest_ranks alike,
                                   std::vector<std::uint32_t> ranks);
    task<void> report_part(session_ptr s, json report);

    daemon_core& core_;
    messenger& peers_;
    reporter& users_;
    directories& directories_;
};

}  // namespace banyan::ckpt
