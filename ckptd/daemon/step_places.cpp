// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/step_places.hpp"

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "ckptd/daemon/session.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_names = 16 * 1024, most_places = 512 * 1024;

}  // namespace

result<step_places> known_places(const session& s) {
    using phase = agreement::coordinator::phase;
    const auto* c = s.agreed->rules().coordinating();
    const bool chosen = c && (c->now() == phase::releasing || c->now() == phase::done) && c->chosen().key;
    if (!chosen)
        return fail(errc::unavailable,
                    fmt::format("job {}: node {} does not know who holds the step", s.job(), s.self()),
                    "bck_restart asks all nodes anew");
    step_places out{*c->chosen().key, {}};
    for (const auto& [rank, holders] : c->chosen().saved)
        for (const auto number : holders)
            if (auto node = holder_of(s, c->chosen(), number)) {
                node->ranks.clear();
                out.of[rank].push_back(std::move(*node));
            }
    return out;
}

// Each node once; a rank and the number of a node for each shard.
nlohmann::json to_json(const step_places& places) {
    auto nodes = nlohmann::json::array(), ranks = nodes, at = nodes;
    std::map<std::string, std::size_t> numbers;
    for (const auto& [rank, holders] : places.of)
        for (const auto& node : holders) {
            const auto [known, is_new] = numbers.emplace(node.name, numbers.size());
            if (is_new) nodes.push_back({{"name", node.name}, {"addr", node.addr}});
            ranks.push_back(rank);
            at.push_back(known->second);
        }
    nlohmann::json out{{"nodes", std::move(nodes)}, {"ranks", std::move(ranks)}, {"at", std::move(at)}};
    put_key(out, places.key);
    return out;
}

result<step_places> read_places(const nlohmann::json& in) {
    const json_fields fields(in);
    step_places out;
    BANYAN_TRY(out.key, get_key(in));
    BANYAN_TRY(const auto listed, fields.list("nodes", most_names));
    BANYAN_TRY(const auto ranks, fields.numbers("ranks", most_places));
    BANYAN_TRY(const auto at, fields.numbers("at", most_places));
    std::vector<session_node> nodes;
    for (const auto& one : listed) {
        session_node node;
        BANYAN_TRY(node.name, one.text("name", 255));
        BANYAN_TRY(node.addr, one.text("addr", 255));
        nodes.push_back(std::move(node));
    }
    if (ranks.size() != at.size())
        return fail(errc::invalid_input, "shards without places, or places without shards");
    for (std::size_t i = 0; i < at.size(); ++i) {
        if (at[i] >= nodes.size()) return fail(errc::invalid_input, "a shard on a node that is not named");
        out.of[ranks[i]].push_back(nodes[at[i]]);
    }
    return out;
}

}  // namespace banyan::ckpt
