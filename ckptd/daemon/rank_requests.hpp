// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of the ranks on the Unix socket: attach, sealed, skipped, finalize, and their end. restorer.hpp
// has restore.
#pragma once

#include "ckptd/daemon/emergencies.hpp"
#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/job_sessions.hpp"
#include "ckptd/daemon/local_client.hpp"

namespace banyan::ckpt {

class rank_requests {
  public:
    struct parts {
        reporter& users;
        protector& copies;
        launches& starts;
        rank_buffers& memory;
        ended_jobs& ended;
        emergencies& watch;
        job_sessions& jobs;
        flusher& flushes;
    };
    rank_requests(daemon_core& core, const parts& p) : core_(core), to_(p) {}

    /// `named`: to the state that it names.
    task<answer_meta> on_attach(client_ptr client, json meta, bool named);
    void on_sealed(const client_ptr& client, const json& meta);
    void on_skipped(const client_ptr& client, const json& meta);
    /// One more of the files of its memory.
    answer_meta on_attach_part(const client_ptr& client, const json& meta);
    task<answer_meta> on_finalize(client_ptr client, json meta);
    task<answer_meta> on_milestone(client_ptr client, json meta);
    void on_disconnect(const client_ptr& client);

  private:
    struct attach_request {
        std::uint32_t rank = 0;
        std::uint64_t world = 0, bytes = 0;
        std::optional<std::uint32_t> step;  ///< of the job, that the process belongs to
        bool huge = false;                  ///< it can map reserved huge pages
        std::string state;                  ///< empty: the job's own
    };
    task<answer_meta> attach(client_ptr client, session_ptr job, const attach_request& asked);
    /// In the launch that the process belongs to, which begins with it where it is the first.
    task<result<void>> enter_launch(client_ptr client, session_ptr job, const attach_request& asked,
                                    clock::time_point until);
    /// Until the process that held the rank is gone, in whatever state of the job, and then in its place.
    task<result<void>> take_rank(client_ptr client, session_ptr job, session_ptr s, std::uint32_t rank,
                                 clock::time_point until);

    daemon_core& core_;
    const parts to_;
};

}  // namespace banyan::ckpt
