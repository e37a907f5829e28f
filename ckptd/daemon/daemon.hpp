// SPDX-License-Identifier: BSD-3-Clause
//
// One node's checkpoint daemon. All state lives on one io_context thread; what blocks runs elsewhere: the
// other daemons' data on `workers_`, munge on `munge_`, a user's checksums and memory on `compute_`, his
// storage on `storage_`, so that stuck storage delays that user's durability alone. The members are spread by
// subject: run.cpp (life), local_server.cpp (the Unix socket), local.cpp (sessions, by messages of this
// node), ranks.cpp (messages of its ranks), peers.cpp (messages of other daemons), seal.cpp (checksum,
// replicate, vote, commit), flush.cpp (storage), restore.cpp, warn.cpp (what the user hears).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>

#include "ckptd/daemon/fair_pool.hpp"
#include "ckptd/daemon/local_limits.hpp"
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

class daemon {
  public:
    daemon(asio::io_context& io, settings s);
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

    // local.cpp
    task<reply> handle_local(client_ptr client, std::uint16_t type, json meta);
    task<reply> on_session_open(json meta);
    task<reply> open_session(session_request request);
    task<reply> on_step_open(json meta);
    task<reply> on_detach(json meta);
    task<reply> on_close(client_ptr client, json meta);
    task<reply> on_seal_now(json meta);
    json on_status(uid_t uid, bool root) const;
    task<result<void>> make_ready(session_ptr s);
    task<result<void>> ensure_memory(session_ptr s, std::uint32_t rank, std::uint64_t bytes);
    /// Of the user whose ended jobs hold most memory here, the oldest that is not his last, for another job
    /// that finds no room. False when there is none.
    bool give_up_ended();
    task<std::string> check_directory(session_ptr s);
    void free_session(const session_ptr& s);
    /// Until what is sealed is complete, and in storage where the job flushes; a minute at most.
    task<void> drain(session_ptr s);

    // ranks.cpp
    task<reply> on_attach(client_ptr client, json meta);
    task<reply> attach(client_ptr client, session_ptr s, std::uint32_t rank, std::uint64_t world,
                       std::uint64_t bytes);
    void on_sealed(const client_ptr& client, const json& meta);
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
    result<session_ptr> fence(const peer_state& from, const json& meta);

    // seal.cpp
    void note_sealed(const session_ptr& s, std::uint32_t rank, std::size_t buffer);
    void scan_buffers(const session_ptr& s, std::uint32_t rank);
    task<void> secure(session_ptr s, copy_ptr c, std::size_t buffer);
    task<bool> checksum(session_ptr s, copy_ptr c);
    task<void> replicate(session_ptr s, copy_ptr c);
    task<void> cast_vote(session_ptr s, copy_ptr c);
    void take_vote(const session_ptr& s, std::uint32_t rank, const copy_key& key, bool replicated);
    void apply_commit(const session_ptr& s, const copy_key& key, bool replicated, bool flush);
    task<void> vote_again(session_ptr s);
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

    // flush.cpp
    task<void> flush_step(session_ptr s, copy_key key);
    task<result<json>> write_files(session_ptr s, copy_key key);
    task<reply> take_files(session_ptr s, json meta);
    task<void> commit_files(session_ptr s, flush_state done);
    void apply_durable(const session_ptr& s, const copy_key& key);
    task<reply> on_flush_now(session_ptr s);

    // restore.cpp
    task<reply> on_restore(client_ptr client, json meta);
    task<reply> on_decide(session_ptr s, json meta);
    task<result<restore_choice>> decide(session_ptr s);
    task<result<restore_choice>> lead(session_ptr s);
    task<std::vector<std::vector<std::uint32_t>>> verified_holders(session_ptr s, copy_key key, bool any);
    task<reply> on_inventory(session_ptr s);
    task<reply> on_verify(session_ptr s, json meta);
    void on_decided(const session_ptr& s, const std::optional<copy_key>& key);
    task<std::vector<std::optional<json>>> ask_all(session_ptr s, peer_message type, json meta,
                                                   milliseconds timeout);
    task<std::vector<copy_key>> storage_steps(session_ptr s, std::optional<copy_key> newer_than);
    task<result<copy_ptr>> bring(session_ptr s, std::uint32_t rank, restore_choice choice,
                                 std::string* source);
    task<result<std::uint64_t>> fill(session_ptr s, std::uint32_t rank, restore_choice choice,
                                     std::span<std::byte> into, std::vector<std::uint32_t>* chunks,
                                     std::string* source);

    asio::io_context& io_;
    settings settings_;
    std::chrono::steady_clock::time_point first_session_by_;  ///< with exit_when_idle
    std::shared_ptr<memory_budget> budget_;
    asio::thread_pool workers_, munge_;
    fair_pool storage_, compute_;  ///< in the name of users
    local_limits local_limits_;
    descriptor_reserve reserve_;
    unique_fd lock_;  ///< held while this daemon has its socket and port
    asio::local::stream_protocol::acceptor local_acceptor_;
    peer::listener peers_;
    asio::signal_set signals_;
    std::map<std::uint64_t, session_ptr> sessions_;
    /// Why a job has no session here, for the ranks of its user; until it ends.
    std::map<std::uint64_t, std::pair<uid_t, error>> refused_;
    std::map<std::uint64_t, client_ptr> clients_;
    std::map<std::tuple<std::string, std::string, bool>, std::shared_ptr<link>> links_;
    std::uint64_t next_id_ = 1;
    bool had_session_ = false;
    bool stopping_ = false;
    log_limiter limiter_;
};

}  // namespace banyan::ckpt
