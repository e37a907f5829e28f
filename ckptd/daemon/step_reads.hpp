// SPDX-License-Identifier: BSD-3-Clause
//
// Serves the step that the ranks began from to their processes: the shard of any rank that saved it, chunk by
// chunk, from this node's memory or another's. So a job with another number of ranks reads its state by name.
// The process holds each chunk against its checksum.
#pragma once

#include "ckptd/daemon/local_client.hpp"
#include "ckptd/daemon/messenger.hpp"

namespace banyan::ckpt {

class step_reads {
  public:
    explicit step_reads(messenger& peers) : peers_(peers) {}

    /// {"bytes", "chunks"} of the shard of "rank"; nothing of one that is in nobody's memory.
    task<answer_meta> on_look(client_ptr client, json meta);
    /// The chunk "chunk" of it, which has "bytes", as the reply's body.
    task<answer_meta> on_read(client_ptr client, json meta);
    /// What that rank has saved: not what it began with in its stead, which was another rank's. Null where it
    /// is not here.
    static copy_ptr saved_here(const session& s, std::uint32_t rank, const copy_key& key);
    /// Another daemon asks who holds what.
    static answer_meta tell_places(const session& s);

  private:
    struct wanted {
        session_ptr s;
        std::uint32_t rank = 0;
        copy_key key;
        copy_ptr here;
    };
    result<wanted> find(const client_ptr& client, const json& meta) const;
    /// Holders of it on other nodes.
    task<result<std::vector<session_node>>> elsewhere(const wanted& what);
    json question(const wanted& what) const;
    std::shared_ptr<link> way_to(const wanted& what, const session_node& holder);

    messenger& peers_;
};

}  // namespace banyan::ckpt
