// SPDX-License-Identifier: BSD-3-Clause
//
// Making the connections and moving data over them.
#include "examples/trainer/net/mesh.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "examples/trainer/failure.hpp"

namespace trainer {
namespace {

struct greeting {
    std::uint64_t magic = 0x31687365'6d676e62U;
    std::uint32_t from = 0, to = 0;
};

void add_star(const std::vector<std::uint32_t>& group, std::uint32_t rank, std::set<std::uint32_t>& peers) {
    if (rank != group.front())
        peers.insert(group.front());
    else
        peers.insert(group.begin() + 1, group.end());
}

std::string name_of(std::uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

mesh::mesh(const settings& conf, const table& ranks, int listener)
    : rank_(conf.self.rank),
      tp_(group_along(ranks.places, rank_, axis::tp)),
      pp_(group_along(ranks.places, rank_, axis::pp)),
      dp_(group_along(ranks.places, rank_, axis::dp)) {
    std::set<std::uint32_t> wanted;
    add_star(tp_, rank_, wanted);
    add_star(dp_, rank_, wanted);
    const auto stage = ranks.places[rank_][axis::pp];
    if (stage > 0) wanted.insert(pp_[stage - 1]);
    if (stage + 1 < pp_.size()) wanted.insert(pp_[stage + 1]);

    // All listeners exist before the table is handed out, so a connect succeeds although the other side is
    // still busy connecting itself: nobody waits in a circle.
    const auto until = clock::now() + conf.start_timeout;
    for (const auto peer : wanted) {
        if (peer > rank_) continue;
        stream link(connect_to(ranks.addresses[peer], until, name_of(peer)), name_of(peer),
                    conf.peer_timeout);
        const greeting mine{.from = rank_, .to = peer};
        link.send(std::as_bytes(std::span(&mine, 1)));
        peers_.emplace(peer, std::move(link));
    }
    while (peers_.size() < wanted.size()) {
        stream link(accept_one(listener, until, "a peer of " + name_of(rank_)), "a peer",
                    std::chrono::seconds(2));
        greeting theirs;
        try {
            link.receive(std::as_writable_bytes(std::span(&theirs, 1)));
        } catch (const failure&) {
            continue;  // a stranger, or a peer that is gone: then its other connections say so
        }
        if (theirs.magic != greeting{}.magic || theirs.to != rank_ || theirs.from < rank_ ||
            !wanted.contains(theirs.from) || peers_.contains(theirs.from))
            continue;
        link.name(name_of(theirs.from));
        link.limit(conf.peer_timeout);
        peers_.emplace(theirs.from, std::move(link));
    }
}

void mesh::all_reduce(axis a, std::uint32_t tag, std::span<float> data) {
    const auto& members = group(a);
    if (members.size() == 1) return;
    if (rank_ != members.front()) {
        auto& first = peers_.at(members.front());
        first.send_tagged(tag, data);
        first.receive_tagged(tag, data);
        return;
    }
    incoming_.resize(std::max(incoming_.size(), data.size()));
    const auto other = std::span(incoming_).first(data.size());
    for (std::size_t m = 1; m < members.size(); ++m) {
        peers_.at(members[m]).receive_tagged(tag, other);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] += other[i];
    }
    for (std::size_t m = 1; m < members.size(); ++m) peers_.at(members[m]).send_tagged(tag, data);
}

bool mesh::any(std::uint32_t tag, bool mine) {
    std::array<float, 1> sum{mine ? 1.0F : 0.0F};
    all_reduce(axis::tp, tag, sum);
    all_reduce(axis::dp, tag, sum);
    // Forward along the pipeline it grows, backward it is told to all.
    const bool first = rank_ == pp_.front(), last = rank_ == pp_.back();
    if (!first) {
        std::array<float, 1> before{};
        receive(-1, tag, before);
        sum[0] += before[0];
    }
    if (!last) {
        send(+1, tag, sum);
        receive(+1, tag, sum);
    }
    if (!first) send(-1, tag, sum);
    return sum[0] > 0;
}

stream& mesh::stage(int direction) {
    const auto self = std::ranges::find(pp_, rank_);
    return peers_.at(*(self + direction));
}

void mesh::send(int direction, std::uint32_t tag, std::span<const float> data) {
    stage(direction).send_tagged(tag, data);
}

void mesh::receive(int direction, std::uint32_t tag, std::span<float> data) {
    stage(direction).receive_tagged(tag, data);
}

}  // namespace trainer
