// SPDX-License-Identifier: BSD-3-Clause
//
// One node's checkpoint daemon. All state lives on one io_context thread; what blocks runs elsewhere: the
// other daemons' data on `workers_`, munge on `munge_`, a user's checksums and memory on `compute_`, his
// storage on `storage_`, so that stuck storage delays that user's durability alone. The members are spread by
// subject: run.cpp (life), local_server.cpp (the Unix socket), local.cpp (sessions, by messages of this
// node), ending.cpp (jobs that have left), ranks.cpp (messages of its ranks), peers.cpp (messages of other
// daemons), agree.cpp (the launch, and what the agreement orders), seal.cpp (checksum, copy to the buddy),
// flush.cpp, flush_part.cpp and directory.cpp (storage), restore.cpp, handover.cpp (a daemon that was started
// again), warn.cpp (what the user hears).
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>

#include "ckptd/daemon/fair_pool.hpp"
#include "ckptd/daemon/local_limits.hpp"
#include "ckptd/daemon/metrics.hpp"
#include "ckptd/daemon/session.hpp"
#include "ckptd/daemon/settings.hpp"
#include "ckptd/net/link.hpp"
#include "common/fd.hpp"
#include "common/log.hpp"
#include "common/peer/listener.hpp"

namespace banyan::ckpt {

using nlohmann::json;
using std::chrono::milliseconds;

/// A process on this node's Unix socket.
struct local_client {
    local_client(asio::local::stream_protocol::socket s, uid_t u, pid_t p)
        : socket(std::move(s)), uid(u), pid(p) {}
    std::uint64_t id = 0;
    asio::local::stream_protocol::socket socket;
    uid_t uid;
    pid_t pid;
    session_ptr attached;
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;
    std::shared_ptr<shard_memory> passed;  ///< goes out with the next reply
};
using client_ptr = std::shared_ptr<local_client>;

/// How many connections users may have, by the process's limit of descriptors.
std::uint32_t local_connections();

struct attach_request {
    std::uint32_t rank = 0;
    std::uint64_t world = 0, bytes = 0;
    std::optional<std::uint32_t> step;  ///< of the job, that the process belongs to
};

/// Why a job has no session here, for the ranks of its user; until it ends. Where memory was short it is
/// tried again when a rank asks.
struct refusal {
    uid_t uid = 0;
    error why;
    std::optional<session_request> request;
    std::vector<json> steps;  ///< that were announced meanwhile
    std::chrono::steady_clock::time_point tried{};
};

class daemon {
  public:
    daemon(asio::io_context& io, settings s, std::shared_ptr<keeper::custody> keeper);
    ~daemon();
    /// Opens both sockets and starts to serve; io.run() does the rest.
    result<void> open();

  private:
    using reply = result<json>;

    // local_server.cpp
    result<void> open_local();
    result<void> lock_socket();
    task<void> accept_local();
    void admit(asio::local::stream_protocol::socket socket, uid_t uid, pid_t pid);
    task<void> serve_local(client_ptr client);
    task<void> converse(client_ptr client);
    task<void> take_turn(client_ptr client);

    // run.cpp
    task<void> serve_peer(std::shared_ptr<peer::channel> connection);
    task<void> tick();
    task<void> stop_on_signal();
    task<void> stop();
    void leave();  ///< gives up socket and port, ends the loop
    void spawn(task<void> work);
    std::shared_ptr<link> link_to(const session_node& node, bool bulk);
    session_ptr find_session(std::uint64_t job) const;
    void notify(const session_ptr& s);

    // handover.cpp
    /// What this daemon has to know when it is started again: to be called after every change of it, before
    /// anybody hears of the change.
    void keep(const session_ptr& s);
    void take_over();
    void resume(const session_ptr& s);
    void watch_former_owners(const session_ptr& s);

    // local.cpp
    session_ptr make_session();
    task<reply> handle_local(client_ptr client, std::uint16_t type, json meta);
    task<reply> on_session_open(json meta);
    task<reply> open_session(session_request request);
    /// Once more, if that was refused for want of memory; null when it is still.
    task<session_ptr> open_refused(std::uint64_t job);
    task<reply> on_step_open(json meta);
    task<reply> on_seal_now(json meta);
    json on_status(uid_t uid, bool root) const;
    /// Memory for these ranks, if it is known how much.
    task<result<void>> make_ready(session_ptr s, std::vector<std::uint32_t> ranks);
    task<result<void>> ensure_memory(session_ptr s, std::uint32_t rank, std::uint64_t bytes);
    task<std::string> check_directory(session_ptr s);

    // ending.cpp
    task<reply> on_detach(json meta);
    task<reply> on_close(client_ptr client, json meta);
    void free_session(const session_ptr& s);
    /// Until what is sealed is complete, and in storage where the job flushes; a minute at most.
    task<void> drain(session_ptr s);
    /// Until what is sealed here is complete, as far as it can become so.
    task<void> settle(session_ptr s, clock::time_point until);
    /// Has the newest complete step written to storage, and waits for it or its failure.
    task<void> store_newest(session_ptr s, std::function<bool()> goes_on, clock::time_point until);
    task<void> leave_in_storage(session_ptr s);
    /// The memory of an ended job, for one that runs and finds no room: of the user who has several here and
    /// most in them, else of whoever has most. False when there is none.
    bool give_up_ended();
    /// The same, and where an ended job's newest step is still on its way to storage, waits for that a while.
    task<bool> wait_for_ended();

    // ranks.cpp
    task<reply> on_attach(client_ptr client, json meta);
    task<reply> attach(client_ptr client, session_ptr s, const attach_request& asked);
    void on_sealed(const client_ptr& client, const json& meta);
    void on_skipped(const client_ptr& client, const json& meta);
    task<reply> on_finalize(client_ptr client, json meta);
    void on_disconnect(const client_ptr& client);

    // peers.cpp
    struct peer_state {
        explicit peer_state(asio::io_context& io) : silence(io) {}
        std::shared_ptr<peer::channel> connection;
        asio::steady_timer silence;
        bool handling = false;  ///< a message, whose body may go into `incoming`
        std::optional<incoming_shard> incoming;
        session_ptr session;
        std::uint64_t generation = 0;  ///< of who sends `incoming`
        bool overtaken = false;        ///< `incoming` has given its place up
    };
    task<result<void>> handle_peer(peer_state* from, wire::header head, json meta);
    task<reply> answer_peer(std::uint16_t type, session_ptr s, json meta);
    task<reply> on_put_begin(peer_state* state, session_ptr s, json meta);
    task<result<void>> on_put_chunk(peer_state* state, wire::header head, json meta);
    task<reply> on_put_end(peer_state* state);
    void end_incoming(peer_state* state);
    void watch_transfer(const std::shared_ptr<peer_state>& state);
    task<result<void>> on_get(peer_state* from, session_ptr s, json meta);
    /// The job's session, for a daemon that belongs to the job and is not of an older generation.
    result<session_ptr> fence(const peer_state& from, peer_message type, const json& meta);

    // agree.cpp
    std::shared_ptr<job_agreement> make_agreement(const std::weak_ptr<session>& of);
    /// The launch that processes of `step` belong to; of the newest step where they do not say.
    result<std::uint64_t> launch_of(const session& s, std::optional<std::uint32_t> step) const;
    /// Puts an announced launch in force. Refused while a process of an older one lives here; `but` does not
    /// count.
    task<result<void>> enter_launch(session_ptr s, std::uint64_t generation, std::uint64_t but);
    task<reply> on_agree(session_ptr s, std::string node, json meta);
    void on_begin(const session_ptr& s);
    void on_agreement_changed(const session_ptr& s);
    task<void> look_at_storage(session_ptr s, std::uint64_t look);
    /// Nothing may begin from there, nor from anything else: what is there is not known to be nothing.
    void refuse_storage(const session_ptr& s, const error& why);
    void watch_agreement(const session_ptr& s);

    // seal.cpp
    void note_sealed(const session_ptr& s, std::uint32_t rank, std::size_t buffer);
    void scan_buffers(const session_ptr& s, std::uint32_t rank);
    task<void> secure(session_ptr s, copy_ptr c, std::size_t buffer);
    task<bool> checksum(session_ptr s, copy_ptr c);
    /// Offers the copy to the buddy, and says how safe it has become.
    task<void> protect(session_ptr s, copy_ptr c);
    task<bool> replicate(session_ptr s, copy_ptr c);
    /// Sends to every other node of the assignment, without waiting.
    void broadcast(const session_ptr& s, peer_message type, json meta);
    task<void> tell(session_ptr s, session_node to, peer_message type, json meta);
    json header(const session_ptr& s) const;
    /// Asks the leader: the first living node in slot order. Nothing = we are it.
    task<std::optional<reply>> ask_leader(session_ptr s, peer_message type, json meta, milliseconds timeout);

    // warn.cpp
    /// The user is told, once for each `about` until that works again.
    void warn(const session_ptr& s, const std::string& about, const std::string& text);
    task<void> report(session_ptr s, std::string about, std::string text);
    /// What came before the step, when the leader may not have been there.
    void report_untold(const session_ptr& s);
    reply on_warning(const session_ptr& s, const json& meta);
    void watch_votes(const session_ptr& s);
    void note_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key);

    // flush.cpp, at the leader
    /// To be called after every commit: starts a flush when one is due and none is under way.
    void flush_if_due(const session_ptr& s);
    task<void> lead_flushes(session_ptr s, bool now);
    task<result<void>> flush_once(session_ptr s);
    task<result<void>> gather_files(session_ptr s, std::string folder);
    /// Of those that have not written their part.
    std::string silent_nodes(const session_ptr& s);
    reply take_files(const session_ptr& s, const std::string& node, const json& meta);
    task<result<void>> commit_files(session_ptr s, claim owner);
    task<reply> on_flush_now(session_ptr s);
    // flush_part.cpp, at every node
    /// The leader's word on a flush: write your part, or: it has failed.
    void on_flush_word(const session_ptr& s, const copy_key& key, const json& meta);
    task<result<json>> write_files(session_ptr s, copy_key key, std::string folder);
    task<void> write_part(session_ptr s, copy_key key, std::string folder);
    task<void> report_part(session_ptr s, json report);
    void apply_durable(const session_ptr& s, const copy_key& key);

    // directory.cpp
    /// The job's claim to its directory, after watching whether another job lives there. errc::conflict: one
    /// does, or a newer start of this job; then nothing of the directory may be used.
    task<result<claim>> own_directory(session_ptr s);
    task<void> beat_directory(session_ptr s, claim c);
    /// After an error of a step that needs the claim: whether it says that the claim is gone.
    void lost_directory(const session_ptr& s, const claim& c, const error& why);

    // restore.cpp
    task<reply> on_restore(client_ptr client, json meta);
    std::string what_is_waited_for(const session& s) const;
    task<void> bring_all(session_ptr s, agreement::prepare what);
    /// False: the shard is damaged or gone wherever it was.
    task<bool> bring(session_ptr s, std::uint32_t rank, agreement::choice from, agreement::ballot number);
    task<bool> take_local(session_ptr s, agreement::held what);
    /// Nothing: the holder does not answer.
    task<std::optional<bool>> take_from(session_ptr s, agreement::held what, session_node holder);
    task<bool> take_from_storage(session_ptr s, agreement::held what);
    task<result<copy_ptr>> room_for(session_ptr s, agreement::held what, std::uint64_t bytes);
    void settle(const session_ptr& s, const copy_ptr& c, const char* source);
    void give_back(const session_ptr& s, const copy_ptr& c);
    task<result<copy_ptr>> into_buffer(session_ptr s, std::uint32_t rank);

    asio::io_context& io_;
    settings settings_;
    const std::shared_ptr<keeper::custody> keeper_;
    std::chrono::steady_clock::time_point first_session_by_;  ///< with exit_when_idle
    std::shared_ptr<memory_budget> budget_;
    std::shared_ptr<metrics> metrics_;  ///< null when nobody is to be told
    asio::thread_pool workers_, munge_;
    fair_pool storage_, compute_, owners_;  ///< in the name of users
    std::uint32_t claims_ = 0;              ///< directories that are ours, or being given up
    local_limits local_limits_;
    descriptor_reserve reserve_;
    unique_fd lock_;  ///< held while this daemon has its socket and port
    asio::local::stream_protocol::acceptor local_acceptor_;
    peer::listener peers_;
    asio::signal_set signals_;
    std::map<std::uint64_t, session_ptr> sessions_;
    std::map<std::uint64_t, refusal> refused_;
    std::map<std::uint64_t, client_ptr> clients_;
    std::map<std::tuple<std::string, std::string, bool>, std::shared_ptr<link>> links_;
    std::uint64_t next_id_ = 1, next_copy_ = 1;
    const std::uint64_t nonce_;  ///< of this life of the daemon
    bool had_session_ = false;
    bool stopping_ = false;
    log_limiter limiter_;
};

}  // namespace banyan::ckpt
