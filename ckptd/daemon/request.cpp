// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/request.hpp"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

using nlohmann::json;
constexpr std::size_t max_name = 255;

result<const json*> get_array(const json& meta, const char* key, std::size_t max_count) {
    const auto it = meta.find(key);
    if (it == meta.end() || !it->is_array() || it->size() > max_count)
        return fail(errc::invalid_input,
                    fmt::format("\"{}\" is not a list of at most {} entries", key, max_count));
    return &*it;
}

// Names and paths go into logs and onto terminals.
result<void> check_text(const std::string& text) {
    if (is_printable(text)) return {};
    return fail(errc::invalid_input,
                fmt::format("\"{}\" has characters that cannot be shown", printable(text)));
}

result<session_node> parse_node(const json& entry) {
    if (!entry.is_object()) return fail(errc::invalid_input, "an entry of \"nodes\" is not an object");
    session_node n;
    BANYAN_TRY(n.name, wire::get_string(entry, "name", max_name));
    BANYAN_TRY(n.addr, wire::get_string(entry, "addr", max_name));
    BANYAN_TRY(n.ranks, get_numbers(entry, "ranks", max_world));
    BANYAN_TRY(n.buddy, wire::get_number(entry, "buddy", max_world));
    if (n.name.empty()) return fail(errc::invalid_input, "a node has no name");
    BANYAN_CHECK(check_text(n.name));
    BANYAN_CHECK(check_text(n.addr));
    if (n.addr.empty()) n.addr = n.name;
    return n;
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

result<std::vector<std::uint32_t>> get_numbers(const json& meta, const char* key, std::size_t max_count) {
    BANYAN_TRY(const auto list, get_array(meta, key, max_count));
    std::vector<std::uint32_t> out;
    out.reserve(list->size());
    for (const auto& n : *list) {
        if (!n.is_number_unsigned() || n.get<std::uint64_t>() > UINT32_MAX)
            return fail(errc::invalid_input, fmt::format("\"{}\" is not a list of numbers", key));
        out.push_back(n.get<std::uint32_t>());
    }
    return out;
}

result<session_request> parse_session(const json& meta) {
    session_request r;
    BANYAN_TRY(r.job, wire::get_number(meta, "job"));
    BANYAN_TRY(r.restart, wire::get_number(meta, "restart", UINT32_MAX - 1));
    BANYAN_TRY(r.uid, wire::get_number(meta, "uid", UINT32_MAX - 1));
    BANYAN_TRY(r.gid, wire::get_number(meta, "gid", UINT32_MAX - 1));
    BANYAN_TRY(r.self, wire::get_string(meta, "self", max_name));
    BANYAN_TRY(r.world, wire::get_number(meta, "world", max_world));
    BANYAN_TRY(r.dir, wire::get_string(meta, "dir", 3000));
    BANYAN_TRY(r.every, wire::get_number(meta, "every", max_step));
    BANYAN_TRY(r.flush, wire::get_number(meta, "flush", max_step));
    BANYAN_TRY(r.buffers, wire::get_number(meta, "buffers", max_buffers));
    BANYAN_TRY(r.bytes, wire::get_number(meta, "bytes", 1ull << 48));
    if (r.job == 0 || r.world == 0 || r.buffers < 2)
        return fail(errc::invalid_input, "a session needs a job, at least one rank and at least 2 buffers");
    if (!r.dir.empty() && r.dir.front() != '/')
        return fail(errc::invalid_input,
                    fmt::format("the checkpoint directory \"{}\" is not absolute", r.dir));
    BANYAN_CHECK(check_text(r.dir));
    BANYAN_TRY(const auto nodes, get_array(meta, "nodes", max_world));
    for (const auto& entry : *nodes) {
        BANYAN_TRY(auto n, parse_node(entry));
        r.nodes.push_back(std::move(n));
    }
    BANYAN_TRY(const auto spares, get_array(meta, "spares", max_world));
    for (const auto& entry : *spares) {
        if (!entry.is_object()) return fail(errc::invalid_input, "an entry of \"spares\" is not an object");
        session_spare s;
        BANYAN_TRY(s.name, wire::get_string(entry, "name", max_name));
        BANYAN_TRY(s.addr, wire::get_string(entry, "addr", max_name));
        BANYAN_CHECK(check_text(s.name));
        BANYAN_CHECK(check_text(s.addr));
        if (s.addr.empty()) s.addr = s.name;
        r.spares.push_back(std::move(s));
    }
    BANYAN_CHECK(check_ranks(r));
    BANYAN_CHECK(check_names(r));
    return r;
}

result<std::vector<std::string>> parse_step_nodes(const json& meta, const session_request& session) {
    BANYAN_TRY(const auto list, get_array(meta, "nodes", max_world));
    if (list->size() != session.nodes.size())
        return fail(errc::invalid_input, fmt::format("the step names {} nodes, the job has {} slots",
                                                     list->size(), session.nodes.size()));
    std::unordered_set<std::string> known, used;
    for (const auto& n : session.nodes) known.insert(n.name);
    for (const auto& s : session.spares) known.insert(s.name);
    std::vector<std::string> out;
    for (const auto& n : *list) {
        if (!n.is_string()) return fail(errc::invalid_input, "\"nodes\" is not a list of names");
        out.push_back(n.get<std::string>());
        if (!known.contains(out.back()))
            return fail(errc::denied,
                        fmt::format("node {} does not belong to the job", out.back().substr(0, max_name)));
        if (!used.insert(out.back()).second)
            return fail(errc::invalid_input, fmt::format("node {} is named twice", out.back()));
    }
    return out;
}

result<copy_key> get_key(const json& meta) {
    copy_key key;
    BANYAN_TRY(key.generation, wire::get_number(meta, "key_generation"));
    BANYAN_TRY(key.step, wire::get_number(meta, "step", max_step));
    return key;
}

void put_key(json& meta, const copy_key& key) {
    meta["key_generation"] = key.generation;
    meta["step"] = key.step;
}

}  // namespace banyan::ckpt
