// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of one daemon share. All on the io_context's thread; what blocks runs elsewhere: the other
// daemons' data on `workers`, munge on `munge`, a user's checksums and memory on `compute`, his storage on
// `storage`, so that stuck storage delays that user's durability alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "ckptd/daemon/fair_pool.hpp"
#include "ckptd/daemon/session.hpp"
#include "ckptd/daemon/settings.hpp"
#include "ckptd/net/async.hpp"
#include "common/log.hpp"

namespace banyan::ckpt {

using nlohmann::json;
using std::chrono::milliseconds;
/// To a request, of a process of this node or of another daemon.
using answer_meta = result<json>;

/// The newest step of a job that was given up with its lease.
struct given_up_step {
    uid_t uid = 0;
    std::uint64_t step = 0;
    clock::time_point at{};
};

struct daemon_core {
    daemon_core(asio::io_context& loop, settings s, std::shared_ptr<keeper::custody> custody);

    asio::io_context& io;
    const settings config;
    const std::shared_ptr<keeper::custody> keeper;
    const std::shared_ptr<memory_budget> budget;
    asio::thread_pool workers, munge;
    fair_pool storage, compute, owners;               ///< in the name of users
    std::map<std::uint64_t, session_ptr> sessions;    ///< of jobs; those of their named states are in them
    std::map<std::uint64_t, given_up_step> given_up;  ///< by job, of some days
    bool had_session = false;
    bool stopping = false;
    std::uint64_t next_copy = 1;
    const std::uint64_t nonce;  ///< of this life of the daemon
    log_limiter limiter;

    /// Runs beside everything else; an exception ends the task alone, and the log says so.
    void spawn(task<void> work);
    /// Null where the job has none.
    session_ptr find_session(std::uint64_t job) const;
    /// Jobs' own sessions, each before those of its states.
    std::vector<session_ptr> all_sessions() const;
    /// Of all states of the job, what is being made included.
    std::uint64_t memory_of_job(const session& s) const;
    /// The job lives: one of its processes, slurmd, or another daemon of it has said something.
    void heard_of(const session& s) const;
    /// A job's own, with its states. Its memory goes when nobody works on it any more.
    void free_session(const session_ptr& s);
    /// Its lease has ended. Should the job come back it is told what it had.
    void end_lease(const session_ptr& s);
    /// What this daemon has to know when it is started again: to be called after every change of it, before
    /// anybody hears of the change.
    void keep(const session_ptr& s);
};

/// What every message to another daemon about a job begins with.
json header_of(const session& s);

}  // namespace banyan::ckpt
