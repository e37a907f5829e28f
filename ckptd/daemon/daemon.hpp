// SPDX-License-Identifier: BSD-3-Clause
//
// One node's checkpoint daemon: its parts, and its life. Everything runs on one io_context thread; core.hpp
// says what runs elsewhere. Each part owns one subject and knows the ones before it:
//     messenger       the other daemons
//     reporter        what the user hears
//     directories     whose a checkpoint directory is
//     flusher         memory to storage
//     protector       a sealed buffer to a vote
//     restorer        what the ranks begin from
//     launches        the agreement of a job's daemons, and what it orders
//     ended_jobs      what jobs leave behind
//     rank_buffers    the memory of the ranks
//     job_sessions, rank_requests, peer_requests      who asks for what
//     hang_watch      ranks that keep the others waiting
//     handover        a daemon that was started again
//     local_server    the Unix socket
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "ckptd/daemon/handover.hpp"
#include "ckptd/daemon/hang_watch.hpp"
#include "ckptd/daemon/local_server.hpp"
#include "ckptd/daemon/metrics.hpp"
#include "ckptd/daemon/peer_requests.hpp"
#include "ckptd/daemon/rank_requests.hpp"
#include "ckptd/daemon/step_reads.hpp"
#include "common/clock.hpp"

namespace banyan::ckpt {

class daemon {
  public:
    daemon(asio::io_context& io, settings s, std::shared_ptr<keeper::custody> keeper);
    ~daemon();
    /// Opens both sockets and starts to serve; io.run() does the rest.
    result<void> open();

  private:
    task<answer_meta> handle_local(client_ptr client, std::uint16_t type, json meta);
    json on_status(uid_t uid, bool root, const json& asked) const;
    task<void> detach_ended();
    task<void> tick();
    task<void> stop_on_signal();
    task<void> stop();
    void leave();  ///< gives up socket and port, ends the loop

    daemon_core core_;
    clock::time_point first_session_by_;  ///< with exit_when_idle
    std::shared_ptr<metrics> metrics_;    ///< null when nobody is to be told
    messenger peers_;
    reporter users_;
    directories directories_;
    flusher flushes_;
    protector copies_;
    restorer restores_;
    step_reads reads_;
    former_nodes former_;
    launches launches_;
    departures departures_;
    ended_jobs ended_;
    emergencies emergencies_;
    rank_buffers memory_;
    job_sessions jobs_;
    rank_requests ranks_;
    peer_requests peer_requests_;
    hang_watch hangs_;
    handover handover_;
    local_server local_;
    asio::signal_set signals_;
};

}  // namespace banyan::ckpt
