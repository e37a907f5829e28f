// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of the other nodes' daemons. The connection is authenticated; the generation is checked on every
// message.
#pragma once

#include <memory>
#include <optional>

#include "ckptd/daemon/departures.hpp"
#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/launches.hpp"
#include "ckptd/daemon/rank_buffers.hpp"
#include "common/timer.hpp"

namespace banyan::ckpt {

class peer_requests {
  public:
    struct parts {
        reporter& users;
        launches& starts;
        departures& leaving;
        flusher& flushes;
        rank_buffers& memory;
    };
    peer_requests(daemon_core& core, const parts& p) : core_(core), to_(p) {}

    task<void> serve(std::shared_ptr<peer::channel> connection);

  private:
    struct peer_state {
        explicit peer_state(asio::io_context& io) : silence(io) {}
        std::shared_ptr<peer::channel> connection;
        timer silence;
        bool handling = false;  ///< a message, whose body may go into `incoming`
        std::optional<incoming_shard> incoming;
        session_ptr session;
        std::uint64_t generation = 0;  ///< of who sends `incoming`
        bool overtaken = false;        ///< `incoming` has given its place up
    };
    task<result<void>> handle(const std::shared_ptr<peer_state>& from, wire::header head, json meta);
    task<answer_meta> answer(peer_state* from, peer_message type, json meta);
    task<result<void>> on_packed(peer_state* from, wire::header head, json meta);
    task<result<void>> on_put_whole(const std::shared_ptr<peer_state>& state, wire::header head, json meta);
    task<answer_meta> on_put_begin(peer_state* state, session_ptr s, json meta);
    task<result<std::shared_ptr<shard_memory>>> room_for(session_ptr s, std::uint32_t rank,
                                                         std::uint64_t bytes);
    task<result<void>> on_put_chunk(peer_state* state, wire::header head, json meta);
    task<result<void>> take_chunk(peer_state* state, wire::header head, std::uint64_t i);
    task<answer_meta> on_put_end(peer_state* state);
    void end_incoming(peer_state* state);
    void watch_transfer(const std::shared_ptr<peer_state>& state);
    task<result<void>> on_get(peer_state* from, json meta);
    struct addressed {
        session_ptr job;
        session_ptr s;  ///< of the state that the message is about; null where that is not open here
    };
    /// For a daemon that belongs to the job and is not of an older generation.
    result<addressed> fence(const peer_state& from, peer_message type, const json& meta);

    daemon_core& core_;
    const parts to_;
};

}  // namespace banyan::ckpt
