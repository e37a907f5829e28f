// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/remember.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ckptd/daemon/archive.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/protocol/session_json.hpp"
#include "ckptd/protocol/state_name.hpp"

namespace banyan::ckpt {
namespace {

using archive::put;
using archive::take;
using nlohmann::json;

constexpr unsigned version = 4, oldest = 3;  // 3 has no memory in parts
constexpr unsigned of_a_state = 5;  // one with a name: an older daemon would take it for the job's own

json of_memory(const shard_memory& m) {
    if (m.parts().empty()) return m.number();
    json parts = json::array();
    for (const auto& p : m.parts()) parts.push_back(p->number());
    // A daemon that knows of no lead would look for the header at the begin of the file. Without parts it
    // finds no memory.
    if (m.shape().lead() != 0)
        return {{"parts", json::array()},
                {"files", parts},
                {"header", m.shape().header},
                {"buffers", m.shape().buffers}};
    return {{"parts", parts}, {"header", m.shape().header}, {"buffers", m.shape().buffers}};
}

// Null where a part of it is not there.
std::shared_ptr<shard_memory> take_memory(const json& in, const kept_memory& memory) {
    const auto file = [&](const json& number) -> std::shared_ptr<shard_memory> {
        const auto at = memory.find(number.get<std::uint64_t>());
        return at == memory.end() ? nullptr : at->second;
    };
    if (!in.is_object()) return file(in);
    std::vector<std::shared_ptr<shard_memory>> parts;
    for (const auto& number : in.at(in.contains("files") ? "files" : "parts")) parts.push_back(file(number));
    auto joined = shard_memory::join(
        std::move(parts), {in.at("header").get<std::uint64_t>(), in.at("buffers").get<std::uint64_t>()});
    return joined ? *joined : nullptr;
}

json of_rank(std::uint32_t rank, const rank_state& r) {
    json out{{"rank", rank},
             {"buffers", r.buffers},
             {"buffer_bytes", r.buffer_bytes},
             {"generation", r.generation},
             {"saved", r.saved},
             {"again", r.again},
             {"source", r.source},
             {"saved_by", r.saved_by},
             {"began", r.began != nullptr && r.began == r.last},
             {"finalized", r.finalized != nullptr && r.finalized == r.last}};
    if (r.newest) out["newest"] = put(*r.newest);
    if (r.memory) out["memory"] = of_memory(*r.memory);
    if (r.last) {
        out["pid"] = r.last->pid();
        out["started"] = r.last->started();
    }
    return out;
}

json of_copy(const shard_copy& c) {
    return {{"number", c.number},
            {"own", c.own},
            {"rank", c.rank},
            {"key", put(c.key)},
            {"bytes", c.bytes},
            {"chunks", put(c.chunks)},
            {"memory", of_memory(*c.memory)},
            {"offset", c.offset},
            {"buffer", c.buffer},
            {"sequence", c.sequence},
            {"checked", c.checked}};
}

json of_assignments(const std::map<std::uint64_t, assignment>& all) {
    json out = json::array();
    for (const auto& [generation, a] : all) out.push_back(json::array({generation, a.nodes, a.buddies}));
    return out;
}

void take_rank(const json& in, const kept_memory& memory, session& s) {
    const auto rank = in.at("rank").get<std::uint32_t>();
    // Earlier builds call each that waits for its memory rank 0, after the one that is.
    if (s.ranks.contains(rank)) return;
    auto& r = s.ranks[rank];
    take(in.at("generation"), r.generation);
    take(in.at("saved"), r.saved);
    take(in.at("again"), r.again);
    r.source = in.at("source").get<std::string>();
    r.saved_by = in.value("saved_by", 0u);
    if (in.contains("newest")) take(in.at("newest"), r.newest.emplace());
    if (in.contains("memory")) {
        // A page of a release that this one does not follow is of no use to anybody.
        if (auto found = take_memory(in.at("memory"), memory);
            found && is_rank_memory(reinterpret_cast<const rank_memory_header*>(found->data())->magic)) {
            r.memory = std::move(found);
            take(in.at("buffers"), r.buffers);
            take(in.at("buffer_bytes"), r.buffer_bytes);
        }
    }
    if (!in.contains("pid")) return;
    r.last =
        std::make_shared<const process>(in.at("pid").get<pid_t>(), in.at("started").get<std::uint64_t>());
    if (in.at("began").get<bool>()) r.began = r.last;
    if (in.value("finalized", false)) r.finalized = r.last;
    // One that has finalized may live on, and holds nothing.
    if (r.finalized || !r.last->alive()) return;
    r.process = r.last;
    r.owner = former_owner;
}

// Nothing: its memory is not there, or holds something else by now.
copy_ptr take_copy(const json& in, const kept_memory& memory, const session& s) {
    auto c = std::make_shared<shard_copy>();
    take(in.at("number"), c->number);
    take(in.at("own"), c->own);
    take(in.at("rank"), c->rank);
    take(in.at("key"), c->key);
    take(in.at("bytes"), c->bytes);
    take(in.at("offset"), c->offset);
    take(in.at("buffer"), c->buffer);
    take(in.at("sequence"), c->sequence);
    take(in.at("checked"), c->checked);
    take(in.at("chunks"), c->chunks);
    c->memory = take_memory(in.at("memory"), memory);
    if (!c->memory || c->bytes > c->memory->size() || c->offset > c->memory->size() - c->bytes)
        return nullptr;
    if (c->checked && c->chunks.size() != chunk_count(c->bytes)) return nullptr;
    if (c->buffer < 0) return c->checked ? c : nullptr;
    const auto r = s.ranks.find(c->rank);
    if (r == s.ranks.end() || !c->memory->shares_with(r->second.memory.get()) ||
        static_cast<std::uint32_t>(c->buffer) >= r->second.buffers)
        return nullptr;
    const auto view = read_buffer(r->second.header().buffer[static_cast<std::size_t>(c->buffer)]);
    const bool same = view && view->sequence == c->sequence && view->bytes == c->bytes;
    return same ? c : nullptr;
}

result<void> take_session(const json& in, const kept_memory& memory, session& s,
                          agreement::agreement& agreed) {
    s.state = in.value("state", std::string());
    const auto has = in.at("version").get<unsigned>();
    if (s.state.empty() ? has < oldest || has > version : has != of_a_state || !is_state_name(s.state))
        return fail(errc::invalid_input, "another version's session was kept");
    auto request = json::from_cbor(in.at("request").get_binary());
    // A state's place is below its job's, which may be as long as any.
    std::string below;
    if (!s.state.empty() && request.contains("dir")) {
        auto& dir = request["dir"].get_ref<std::string&>();
        below = fmt::format("/states/{}", s.state);
        if (dir.ends_with(below))
            dir.resize(dir.size() - below.size());
        else
            below.clear();
    }
    BANYAN_TRY(s.request, parse_session(request));
    s.request.dir += below;
    for (const auto& n : s.request.nodes) s.addresses[n.name] = n.addr;
    for (const auto& n : s.request.spares) s.addresses[n.name] = n.addr;
    s.user = {s.request.uid, s.request.gid, {s.request.gid}};
    s.slot = s.slot_of(s.request.self);
    take(in.at("generation"), s.generation);
    for (const auto& one : in.at("announced"))
        s.announced[one.at(0).get<std::uint64_t>()] = {one.at(1).get<std::vector<std::string>>(),
                                                       one.at(2).get<std::vector<std::uint32_t>>()};
    agreement::earlier_nodes::addresses earlier;
    take(in.at("former"), earlier);
    if (in.contains("left")) take(in.at("left"), s.former.left);
    take(in.at("finished"), s.finished);
    take(in.at("detached"), s.detached);
    s.lease_end = clock::time_point(std::chrono::nanoseconds(in.at("lease_end").get<std::int64_t>()));
    take(in.at("committed"), s.committed);
    take(in.at("durable"), s.durable);
    take(in.at("committed_replicated"), s.committed_replicated);
    // Earlier builds take no step for the first turn.
    std::uint64_t epoch = 0;
    take(in.at("flush_epoch"), epoch);
    s.flush.next_turn = epoch == 0 ? 0 : epoch + 1;
    json rules = in.at("agreed");
    rules.emplace("over", false);  // earlier builds do not write these
    rules.emplace("group", 0);
    rules.emplace("ended_by", 0);
    rules.emplace("earlier", json{{"awaits_launch", false}});
    if (auto& member = rules["member"]; member.is_object()) member.emplace("all_heard", false);
    take(rules, agreed);
    agreed.earlier().add_all(earlier);
    for (const auto& one : in.at("ranks")) take_rank(one, memory, s);
    std::set<std::uint64_t> agreed_on;
    for (const auto& c : agreed.copies().copies()) agreed_on.insert(c.number);
    for (const auto& one : in.at("copies")) {
        auto c = take_copy(one, memory, s);
        const bool known = agreed_on.contains(one.at("number").get<std::uint64_t>());
        if (c && known) s.copies.push_back(c);
        // It was let go of, and its memory was about to be.
        if (c && !known && c->buffer >= 0)
            s.free_buffer(s.ranks[c->rank], static_cast<std::size_t>(c->buffer), c->sequence);
        if (!c && known) agreed.lose(one.at("number").get<std::uint64_t>());
    }
    // Those of which the session had no copy any more.
    std::vector<agreement::shelf::id> without;
    for (const auto& c : agreed.copies().copies())
        if (!s.find_copy(c.number)) without.push_back(c.number);
    for (const auto number : without) agreed.lose(number);
    return {};
}

}  // namespace

std::vector<std::uint8_t> remember(session& s) {
    // Of a thousand nodes, and the same for hours.
    if (s.remembered.request_text.empty() || s.request != s.remembered.request) {
        s.remembered.request = s.request;
        s.remembered.request_text = json::to_cbor(session_to_json(s.request));
    }
    json out;
    out["version"] = s.state.empty() ? version : of_a_state;
    if (!s.state.empty()) out["state"] = s.state;
    out["request"] = json::binary(s.remembered.request_text);
    out["generation"] = s.generation;
    out["announced"] = of_assignments(s.announced);
    out["former"] = put(s.agreed->rules().earlier().nodes());
    out["left"] = put(s.former.left);
    out["finished"] = put(s.finished);
    out["detached"] = s.detached;
    out["lease_end"] =
        std::chrono::duration_cast<std::chrono::nanoseconds>(s.lease_end.time_since_epoch()).count();
    out["committed"] = put(s.committed);
    out["durable"] = put(s.durable);
    out["committed_replicated"] = s.committed_replicated;
    out["flush_epoch"] = s.flush.next_turn == 0 ? 0 : s.flush.next_turn - 1;
    out["agreed"] = put(s.agreed->rules());
    auto& ranks = out["ranks"] = json::array();
    for (const auto& [rank, r] : s.ranks) ranks.push_back(of_rank(rank, r));
    auto& copies = out["copies"] = json::array();
    for (const auto& c : s.copies)
        if (c->number != 0 && !c->dropped) copies.push_back(of_copy(*c));
    return json::to_cbor(out);
}

result<void> recall(std::span<const std::byte> text, const kept_memory& memory, session& s,
                    agreement::agreement& agreed) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(text.data());
    try {
        return take_session(json::from_cbor(from, from + text.size()), memory, s, agreed);
    } catch (const json::exception& e) {
        return fail(errc::invalid_input,
                    fmt::format("what was kept of a session cannot be read: {}", e.what()));
    }
}

}  // namespace banyan::ckpt
