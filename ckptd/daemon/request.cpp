// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/request.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

using nlohmann::json;
constexpr std::size_t max_name = 255;

// Names and paths go into logs and onto terminals.
result<void> check_text(const std::string& text) {
    if (is_printable(text)) return {};
    return fail(errc::invalid_input,
                fmt::format("\"{}\" has characters that cannot be shown", printable(text)));
}

result<session_node> parse_node(const json_fields& in) {
    session_node n;
    BANYAN_TRY(n.name, in.text("name", max_name));
    BANYAN_TRY(n.addr, in.text("addr", max_name));
    BANYAN_TRY(n.ranks, in.numbers("ranks", max_world));
    BANYAN_TRY(n.buddy, in.number("buddy", max_world));
    if (n.name.empty()) return fail(errc::invalid_input, "a node has no name");
    BANYAN_CHECK(check_text(n.name));
    BANYAN_CHECK(check_text(n.addr));
    if (n.addr.empty()) n.addr = n.name;
    return n;
}

// Nodes without ranks.
result<std::vector<session_spare>> parse_others(const json_fields& in, const char* key) {
    std::vector<session_spare> out;
    BANYAN_TRY(const auto listed, in.list(key, max_world));
    for (const auto& entry : listed) {
        session_spare s;
        BANYAN_TRY(s.name, entry.text("name", max_name));
        BANYAN_TRY(s.addr, entry.text("addr", max_name));
        if (s.name.empty()) return fail(errc::invalid_input, fmt::format("one of \"{}\" has no name", key));
        BANYAN_CHECK(check_text(s.name));
        BANYAN_CHECK(check_text(s.addr));
        if (s.addr.empty()) s.addr = s.name;
        out.push_back(std::move(s));
    }
    return out;
}

result<void> check_ranks(const session_request& r) {
    std::vector<bool> seen(r.world);
    std::uint32_t count = 0;
    for (const auto& n : r.nodes) {
        if (n.buddy >= r.nodes.size())
            return fail(errc::invalid_input,
                        fmt::format("node {}: there is no slot {} for its copies", n.name, n.buddy));
        for (const auto rank : n.ranks) {
            if (rank >= r.world || seen[rank])
                return fail(errc::invalid_input, fmt::format("node {}: rank {} is doubled or not below {}",
                                                             n.name, rank, r.world));
            seen[rank] = true;
            ++count;
        }
    }
    if (count != r.world)
        return fail(errc::invalid_input, fmt::format("the nodes hold {} ranks of {}", count, r.world));
    return {};
}

/// Slots that a step may have beyond `nodes`, or is to do without.
result<void> parse_slots(const json_fields& in, session_request& r) {
    if (!in.has("slots")) return {};
    BANYAN_TRY(const auto listed, in.list("slots", max_world));
    BANYAN_TRY(r.min_nodes, in.number("min_nodes", max_world));
    BANYAN_TRY(r.group, in.number("group", max_world));
    std::vector<bool> seen_ranks(max_world), seen_buddies(listed.size());
    std::uint32_t ranks = 0, most = 0;
    const auto wrong = [](const char* what) {
        return fail(errc::invalid_input, fmt::format("the slots of a session that may shrink: {}", what));
    };
    if (r.group == 0) return wrong("a group has no ranks");
    for (const auto& entry : listed) {
        session_slot s;
        BANYAN_TRY(s.ranks, entry.numbers("ranks", max_world));
        BANYAN_TRY(s.buddy, entry.number("buddy", max_world));
        if (s.buddy >= listed.size() || seen_buddies[s.buddy])
            return wrong("their buddies are no permutation");
        seen_buddies[s.buddy] = true;
        for (const auto rank : s.ranks) {
            if (rank >= max_world || seen_ranks[rank]) return wrong("a rank is there twice");
            seen_ranks[rank] = true;
            most = std::max(most, rank);
            ++ranks;
        }
        // Those of the first groups are the first ranks: whatever number of groups there is.
        if (ranks % r.group == 0 && ranks != 0 && most != ranks - 1)
            return wrong("those of the first groups do not have the first ranks");
        r.slots.push_back(std::move(s));
    }
    if (r.nodes.size() > r.slots.size() || r.min_nodes == 0 || r.min_nodes > r.nodes.size())
        return wrong("there are fewer, or more, nodes than may be");
    if (ranks % r.group != 0) return wrong("the groups do not divide the ranks");
    for (std::size_t i = 0; i < r.nodes.size(); ++i)
        if (r.nodes[i].ranks != r.slots[i].ranks) return wrong("a node has other ranks than its slot");
    return {};
}

/// Whether so many nodes may have the first slots.
bool may_have(const session_request& session, std::size_t nodes) {
    if (nodes == session.nodes.size()) return true;
    if (session.slots.empty() || nodes < session.min_nodes || nodes > session.slots.size()) return false;
    std::size_t ranks = 0;
    for (std::size_t i = 0; i < nodes; ++i) ranks += session.slots[i].ranks.size();
    return ranks % session.group == 0;
}

result<void> check_names(const session_request& r) {
    std::unordered_set<std::string> names;
    for (const auto& n : r.nodes)
        if (!names.insert(n.name).second)
            return fail(errc::invalid_input, fmt::format("node {} is listed twice", n.name));
    for (const auto& s : r.spares)
        if (!names.insert(s.name).second)
            return fail(errc::invalid_input, fmt::format("node {} is listed twice", s.name));
    if (!names.contains(r.self))
        return fail(errc::invalid_input,
                    fmt::format("this node, {}, is neither a node nor a spare of the job", r.self));
    return {};
}

}  // namespace

result<session_request> parse_session(const json& meta) {
    const json_fields in(meta);
    session_request r;
    BANYAN_TRY(r.job, in.number("job"));
    BANYAN_TRY(r.restart, in.number("restart", max_restart));
    BANYAN_TRY(r.uid, in.number("uid", UINT32_MAX - 1));
    BANYAN_TRY(r.gid, in.number("gid", UINT32_MAX - 1));
    BANYAN_TRY(r.self, in.text("self", max_name));
    BANYAN_TRY(r.world, in.number("world", max_world));
    BANYAN_TRY(r.dir, in.text("dir", 3000));
    BANYAN_TRY(r.every, in.number("every", max_step));
    BANYAN_TRY(r.flush, in.number("flush", max_step));
    if (in.has("milestone")) {
        BANYAN_TRY(r.milestone, in.number("milestone", max_step));
    }
    BANYAN_TRY(r.buffers, in.number("buffers", max_buffers));
    BANYAN_TRY(r.bytes, in.number("bytes", 1ull << 48));
    if (r.job == 0 || r.world == 0 || r.buffers < 2)
        return fail(errc::invalid_input, "a session needs a job, at least one rank and at least 2 buffers");
    if (!r.dir.empty() && r.dir.front() != '/')
        return fail(errc::invalid_input,
                    fmt::format("the checkpoint directory \"{}\" is not absolute", r.dir));
    BANYAN_CHECK(check_text(r.dir));
    BANYAN_TRY(const auto nodes, in.list("nodes", max_world));
    for (const auto& entry : nodes) {
        BANYAN_TRY(auto n, parse_node(entry));
        r.nodes.push_back(std::move(n));
    }
    BANYAN_TRY(r.spares, parse_others(in, "spares"));
    // An older spank plugin does not name them.
    if (in.has("former")) {
        BANYAN_TRY(r.former, parse_others(in, "former"));
    }
    BANYAN_CHECK(check_ranks(r));
    BANYAN_CHECK(check_names(r));
    BANYAN_CHECK(parse_slots(in, r));
    return r;
}

result<std::vector<std::string>> parse_step_nodes(const json& meta, const session_request& session) {
    BANYAN_TRY(auto names, json_fields(meta).texts("nodes", max_world, max_name));
    if (!may_have(session, names.size()))
        return fail(errc::invalid_input, fmt::format("the step names {} nodes, the job has {} slots",
                                                     names.size(), session.nodes.size()));
    std::unordered_set<std::string> known, used;
    for (const auto& n : session.nodes) known.insert(n.name);
    for (const auto& s : session.spares) known.insert(s.name);
    for (const auto& name : names) {
        if (!known.contains(name))
            return fail(errc::denied, fmt::format("node {} does not belong to the job", name));
        if (!used.insert(name).second)
            return fail(errc::invalid_input, fmt::format("node {} is named twice", name));
    }
    return names;
}

result<copy_key> get_key(const json& meta) { return get_key(json_fields(meta)); }

result<copy_key> get_key(const json_fields& in) {
    copy_key key;
    BANYAN_TRY(key.generation, in.number("key_generation"));
    BANYAN_TRY(key.step, in.number("step", max_step));
    return key;
}

void put_key(json& meta, const copy_key& key) {
    meta["key_generation"] = key.generation;
    meta["step"] = key.step;
}

}  // namespace banyan::ckpt
