// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/encoding.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::agreement {
namespace {

using nlohmann::json;

// In the order of `body`.
constexpr std::array<std::string_view, std::variant_size_v<body>> names{
    "collect", "inventory", "prepare", "prepared",    "release",      "released", "outbid",
    "again",   "vote",      "commit",  "passed_over", "still_needed", "let_go"};

constexpr std::size_t most_name_bytes = 255;

// Numbers in pairs and triples: what is sent most is lists of them.
json put(const ballot& b) { return {b.number, b.nonce}; }
json put(const copy_key& k) { return {k.generation, k.step}; }
json put(const held& h) { return {h.key.generation, h.key.step, h.rank}; }
// Names and addresses in turn.
json put(const std::vector<node_address>& nodes) {
    auto out = json::array();
    for (const auto& n : nodes) {
        out.push_back(n.name);
        out.push_back(n.addr);
    }
    return out;
}

struct writer {
    std::span<const std::uint32_t> ranks;

    static void may(json& out, const char* name, const std::optional<copy_key>& key) {
        if (key) out[name] = put(*key);
    }
    static json with(const ballot& number) { return {{"ballot", put(number)}}; }

    json operator()(const collect& m) const { return with(m.number); }
    json operator()(const inventory& m) const {
        json out = with(m.number);
        out["life"] = m.life;
        auto& copies = out["copies"] = json::array();
        for (const auto& h : m.copies) copies.push_back(put(h));
        if (m.accepted) out["accepted"] = put(*m.accepted);
        may(out, "key", m.key);
        may(out, "replicated", m.replicated);
        if (m.forgetful) out["forgetful"] = true;
        may(out, "had", m.had);
        if (m.begun.generation != 0) {
            out["begun"] = m.begun.generation;
            may(out, "from", m.begun.key);
        }
        if (!m.former.empty()) out["former"] = put(m.former);
        return out;
    }
    json operator()(const prepare& m) const {
        json out = with(m.number);
        out["life"] = m.life;
        may(out, "key", m.what.key);
        if (m.what.storage) out["storage"] = true;
        auto& holders = out["holders"] = json::array();
        for (const auto rank : ranks) {
            if (rank >= m.what.holders.size()) continue;
            holders.push_back({{"rank", rank}, {"slots", m.what.holders[rank]}});
            const auto instead = m.what.instead.find(rank);
            if (instead != m.what.instead.end()) holders.back()["of"] = instead->second;
        }
        if (!m.what.outside.empty()) out["outside"] = put(m.what.outside);
        return out;
    }
    json operator()(const prepared& m) const {
        json out = with(m.number);
        out["failed"] = m.failed;
        return out;
    }
    json operator()(const release& m) const {
        json out = with(m.number);
        may(out, "key", m.key);
        may(out, "replicated", m.replicated);
        if (m.all_heard) out["all_heard"] = true;
        return out;
    }
    json operator()(const released& m) const { return with(m.number); }
    json operator()(const outbid& m) const { return with(m.promised); }
    json operator()(const again& m) const { return {{"forgetful", m.forgetful}}; }
    json operator()(const vote& m) const {
        json kept = json::array();
        for (const auto& [key, safety, heard] : m.kept)
            kept.push_back({key.generation, key.step, static_cast<unsigned>(safety), unsigned{heard}});
        return {{"rank", m.rank}, {"kept", std::move(kept)}, {"first", m.first}, {"end", m.end}};
    }
    json operator()(const commit& m) const {
        return {{"key", put(m.key)}, {"level", static_cast<unsigned>(m.safety)}};
    }
    json operator()(const passed_over& m) const { return {{"key", put(m.key)}}; }
    json operator()(const still_needed& m) const { return {{"what", put(m.what)}}; }
    json operator()(const let_go& m) const { return {{"what", put(m.what)}}; }
};

struct reader {
    json_fields in;
    limits most;

    template <std::size_t N>
    result<std::array<std::uint64_t, N>> tuple(const char* name) const {
        BANYAN_TRY(const auto list, in.numbers<std::uint64_t>(name, N));
        if (list.size() != N)
            return fail(errc::invalid_input,
                        fmt::format("\"{}\" has {} numbers, not {}", name, list.size(), N));
        std::array<std::uint64_t, N> out;
        std::copy(list.begin(), list.end(), out.begin());
        return out;
    }
    // A list of tuples, one after the other.
    template <std::size_t N>
    result<std::vector<std::array<std::uint64_t, N>>> tuples(const char* name) const {
        const auto* list = in.find(name);
        if (!list || !list->is_array()) return wrong(name);
        std::vector<std::array<std::uint64_t, N>> out;
        for (const auto& one : *list) {
            if (!one.is_array() || one.size() != N) return wrong(name);
            auto& numbers = out.emplace_back();
            for (std::size_t i = 0; i < N; ++i) {
                if (!one[i].is_number_unsigned()) return wrong(name);
                numbers[i] = one[i].get<std::uint64_t>();
            }
        }
        return out;
    }
    static std::unexpected<error> wrong(const char* name) {
        return fail(errc::invalid_input, fmt::format("\"{}\" is not what it should be", name));
    }

    result<copy_key> key_of(std::uint64_t generation, std::uint64_t step) const {
        if (step > most.max_step) return wrong("step");
        return copy_key{generation, step};
    }
    result<held> held_of(const std::array<std::uint64_t, 3>& n) const {
        BANYAN_TRY(const auto key, key_of(n[0], n[1]));
        if (n[2] >= most.world) return wrong("rank");
        return held{key, static_cast<std::uint32_t>(n[2])};
    }
    static result<level> level_of(std::uint64_t n) {
        if (n > static_cast<unsigned>(level::replicated)) return wrong("level");
        return static_cast<level>(n);
    }
    result<ballot> number(const char* name = "ballot") const {
        BANYAN_TRY(const auto n, tuple<2>(name));
        return ballot{n[0], n[1]};
    }
    result<copy_key> key() const {
        BANYAN_TRY(const auto n, tuple<2>("key"));
        return key_of(n[0], n[1]);
    }
    result<std::optional<copy_key>> may_key(const char* name) const {
        if (!in.has(name)) return std::nullopt;
        BANYAN_TRY(const auto n, tuple<2>(name));
        BANYAN_TRY(const auto key, key_of(n[0], n[1]));
        return key;
    }
    result<bool> may_flag(const char* name) const {
        return in.has(name) ? in.flag(name) : result<bool>(false);
    }
    result<std::vector<node_address>> may_nodes(const char* name) const {
        std::vector<node_address> out;
        if (!in.has(name)) return out;
        BANYAN_TRY(auto all, in.texts(name, 2 * most_outside, most_name_bytes));
        if (all.size() % 2 != 0) return wrong(name);
        for (std::size_t i = 0; i < all.size(); i += 2) {
            if (all[i].empty() || !is_printable(all[i]) || !is_printable(all[i + 1])) return wrong(name);
            out.push_back({std::move(all[i]), std::move(all[i + 1])});
        }
        return out;
    }
    result<held> what() const {
        BANYAN_TRY(const auto n, tuple<3>("what"));
        return held_of(n);
    }

    result<body> read_inventory() const {
        inventory m;
        BANYAN_TRY(m.number, number());
        BANYAN_TRY(m.life, in.number("life"));
        BANYAN_TRY(const auto copies, tuples<3>("copies"));
        for (const auto& n : copies) {
            BANYAN_TRY(const auto one, held_of(n));
            m.copies.push_back(one);
        }
        if (in.has("accepted")) {
            BANYAN_TRY(m.accepted, number("accepted"));
        }
        BANYAN_TRY(m.key, may_key("key"));
        BANYAN_TRY(m.replicated, may_key("replicated"));
        BANYAN_TRY(m.forgetful, may_flag("forgetful"));
        BANYAN_TRY(m.had, may_key("had"));
        BANYAN_TRY(m.former, may_nodes("former"));
        if (in.has("begun")) {
            BANYAN_TRY(m.begun.generation, in.number("begun"));
        }
        BANYAN_TRY(m.begun.key, may_key("from"));
        return m;
    }
    result<body> read_prepare() const {
        prepare m;
        BANYAN_TRY(m.number, number());
        BANYAN_TRY(m.life, in.number("life"));
        BANYAN_TRY(m.what.key, may_key("key"));
        BANYAN_TRY(m.what.storage, may_flag("storage"));
        BANYAN_TRY(m.what.outside, may_nodes("outside"));
        const auto holders_at_most = most.slots + m.what.outside.size();
        m.what.holders.resize(most.world);
        BANYAN_TRY(const auto holders, in.list("holders", most.world));
        for (const auto& one : holders) {
            BANYAN_TRY(const auto rank, one.number("rank", most.world - 1));
            if (one.has("of")) {
                BANYAN_TRY(m.what.instead[static_cast<std::uint32_t>(rank)],
                           one.number("of", most.world - 1));
            }
            BANYAN_TRY(m.what.holders[rank], one.numbers("slots", holders_at_most));
            for (const auto slot : m.what.holders[rank])
                if (slot >= holders_at_most) return wrong("slots");
        }
        return m;
    }
    result<body> read_prepared() const {
        prepared m;
        BANYAN_TRY(m.number, number());
        BANYAN_TRY(m.failed, in.numbers("failed", most.world));
        for (const auto rank : m.failed)
            if (rank >= most.world) return wrong("failed");
        return m;
    }
    result<body> read_release() const {
        release m;
        BANYAN_TRY(m.number, number());
        BANYAN_TRY(m.key, may_key("key"));
        BANYAN_TRY(m.replicated, may_key("replicated"));
        BANYAN_TRY(m.all_heard, may_flag("all_heard"));
        return m;
    }
    result<body> read_vote() const {
        vote m;
        BANYAN_TRY(const auto rank, in.number("rank", most.world - 1));
        m.rank = static_cast<std::uint32_t>(rank);
        BANYAN_TRY(const auto kept, tuples<4>("kept"));
        for (const auto& n : kept) {
            BANYAN_TRY(const auto key, key_of(n[0], n[1]));
            BANYAN_TRY(const auto safety, level_of(n[2]));
            if (n[3] > 1) return wrong("kept");
            m.kept.push_back({key, safety, n[3] == 1});
        }
        BANYAN_TRY(m.first, in.number("first"));
        BANYAN_TRY(m.end, in.number("end"));
        return m;
    }
    result<body> read_commit() const {
        BANYAN_TRY(const auto key, this->key());
        BANYAN_TRY(const auto n, in.number("level"));
        BANYAN_TRY(const auto safety, level_of(n));
        return commit{key, safety};
    }

    result<body> read(std::string_view name) const {
        if (name == "inventory") return read_inventory();
        if (name == "prepare") return read_prepare();
        if (name == "prepared") return read_prepared();
        if (name == "release") return read_release();
        if (name == "vote") return read_vote();
        if (name == "commit") return read_commit();
        if (name == "again") {
            BANYAN_TRY(const auto forgetful, may_flag("forgetful"));
            return again{forgetful};
        }
        if (name == "passed_over") {
            BANYAN_TRY(const auto key, this->key());
            return passed_over{key};
        }
        if (name == "still_needed" || name == "let_go") {
            BANYAN_TRY(const auto what, this->what());
            return name == "let_go" ? body(let_go{what}) : body(still_needed{what});
        }
        BANYAN_TRY(const auto number, this->number());
        if (name == "collect") return collect{number};
        if (name == "released") return released{number};
        return outbid{number};
    }
};

}  // namespace

json encode(const message& m, std::span<const std::uint32_t> ranks) {
    json out = std::visit(writer{ranks}, m.what);
    out["generation"] = m.generation;
    out["is"] = names[m.what.index()];
    return out;
}

result<message> decode(const json& in, const limits& most) {
    const json_fields fields(in);
    message m;
    BANYAN_TRY(m.generation, fields.number("generation"));
    BANYAN_TRY(const auto which, fields.one_of("is", names));
    BANYAN_TRY(m.what, (reader{fields, most}.read(names[which])));
    return m;
}

}  // namespace banyan::ckpt::agreement
