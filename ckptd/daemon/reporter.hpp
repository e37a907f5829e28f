// SPDX-License-Identifier: BSD-3-Clause
//
// What the user hears of a job's troubles. They are many nodes' and often the same everywhere: a full
// directory fails on each. So every node reports to the leader, and the leader says each thing once.
#pragma once

#include <string>

#include "ckptd/daemon/messenger.hpp"
#include "common/job_news.hpp"

namespace banyan::ckpt {

class reporter {
  public:
    reporter(daemon_core& core, messenger& peers) : core_(core), peers_(peers) {}

    /// The user is told, once for each `about` until that works again.
    void warn(const session_ptr& s, const std::string& about, const std::string& text);
    /// Damage in this node's memory: for the log, and for the fault daemon's agent.
    void note_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key);
    /// The same of what this node sent: at `to` it was not what the sums say, though it arrived as it left.
    void note_sent_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key,
                          const std::string& to);
    /// A file that is there whole and does not hold what was summed up.
    void note_stored_damage(const session_ptr& s, std::uint32_t rank, const std::string& what);
    /// What came before the step, when the leader may not have been there.
    void report_untold(const session_ptr& s);
    /// At the leader, what another node reports.
    answer_meta on_warning(const session_ptr& s, const json& meta);
    /// The job's owner, or root, says that its step is not started again.
    answer_meta on_given_up(uid_t uid, bool root, const json& meta);
    /// At the leader: a step that does not become complete.
    void watch_votes(const session_ptr& s);

  private:
    void tell_of_damage(const session_ptr& s, std::uint32_t rank, job_news::kind what, std::string text);
    task<void> report(session_ptr s, std::string about, std::string text);

    daemon_core& core_;
    messenger& peers_;
};

}  // namespace banyan::ckpt
