// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/known_fabric.hpp"

#include <algorithm>
#include <array>

#include <banyan/topo/capacity.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"

namespace banyan::fault {
namespace {

constexpr std::array<std::string_view, 2> node_kinds = {"switch", "hca"};
constexpr std::uint64_t format = 1;

bool is_slower(const topo::link_rate& now, const topo::link_rate& before) {
    // Of a rate that is not known nothing can be said.
    return topo::gbps(now) > 0 && topo::gbps(now) < topo::gbps(before);
}

}  // namespace

known_fabric::known_fabric(const topo::fabric& f) {
    const auto all = topo::diff({}, f);
    for (const auto& n : all.new_nodes) nodes_[n.id] = {n.name, {}, n.kind};
    for (const auto& h : f.hcas)
        if (h.host < f.hosts.size()) nodes_[h.id].host = f.hosts[h.host].name;
    for (const auto& l : all.new_links)
        put(std::minmax(port(l.a.id, l.a.port), port(l.b.id, l.b.port)), l.after);
}

void known_fabric::put(const ends& at, const topo::link_rate& rate) {
    links_[at] = rate;
    ports_.insert({at.first, at.second});
}

topo::link_end known_fabric::end(const port& at) const {
    const auto it = nodes_.find(at.first);
    if (it == nodes_.end()) return {at.first, at.second, {}, topo::node_kind::switch_node};
    return {at.first, at.second, it->second.name, it->second.kind};
}

topo::changed_link known_fabric::told(const ends& at, const topo::link_rate& before,
                                      const topo::link_rate& after) const {
    return {end(at.first), end(at.second), before, after};
}

known_fabric::difference known_fabric::lacking_in(const known_fabric& seen) const {
    difference out;
    for (const auto& [at, rate] : links_) {
        const auto now = seen.links_.find(at);
        if (now == seen.links_.end())
            out.lost.push_back(told(at, rate, {}));
        else if (is_slower(now->second, rate))
            out.slower.push_back(told(at, rate, now->second));
    }
    for (const auto& [id, n] : nodes_)
        if (!seen.nodes_.contains(id)) out.gone.push_back({id, n.name, n.kind});
    return out;
}

std::string known_fabric::host_of(topo::guid hca) const {
    const auto it = nodes_.find(hca);
    return it == nodes_.end() ? std::string() : it->second.host;
}

std::size_t known_fabric::hcas_of(const std::string& host) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(nodes_, [&](const auto& n) { return n.second.host == host; }));
}

bool known_fabric::linked(topo::guid id) const {
    const auto at = ports_.lower_bound({id, 0});
    return at != ports_.end() && at->first == id;
}

bool known_fabric::add(const known_fabric& seen) {
    bool changed = false;
    for (const auto& [id, n] : seen.nodes_) {
        auto& own = nodes_[id];
        auto now = n;
        if (now.host.empty()) now.host = own.host;  // with few of its HCAs a host may not be made out
        if (own == now) continue;
        own = std::move(now);
        changed = true;
    }
    for (const auto& [at, rate] : seen.links_) {
        if (const auto own = links_.find(at); own != links_.end()) {
            if (topo::gbps(rate) <= topo::gbps(own->second)) continue;
            own->second = rate;
        } else if (ports_.contains(at.first) || ports_.contains(at.second)) {
            continue;  // a cable that is plugged elsewhere, and is missed where it was
        } else {
            put(at, rate);
        }
        changed = true;
    }
    return changed;
}

bool known_fabric::forget(const object& gone, const known_fabric& seen) {
    const auto is_of_it = [&](const ends& at) {
        const auto count = std::ranges::count_if(gone.ends, [&](const end_point& e) {
            const bool any_port = gone.kind == object_kind::sw;
            return std::ranges::any_of(std::array{at.first, at.second}, [&](const port& p) {
                return p.first == e.guid && (any_port || p.second == e.port);
            });
        });
        const bool is_link = gone.kind == object_kind::link || gone.kind == object_kind::hca;
        return count >= (is_link ? 2 : 1);
    };
    std::set<topo::guid> nodes;  // that lost a link, or are named
    for (const auto& e : gone.ends) nodes.insert(e.guid);
    bool changed = false;
    for (auto it = links_.begin(); it != links_.end();) {
        const bool its = is_of_it(it->first);
        const auto now = its ? seen.links_.find(it->first) : seen.links_.end();
        if (its && now == seen.links_.end()) {
            for (const auto& p : {it->first.first, it->first.second}) {
                ports_.erase(p);
                nodes.insert(p.first);
            }
            it = links_.erase(it);
            changed = true;
            continue;
        }
        if (its && is_slower(now->second, it->second)) {
            it->second = now->second;
            changed = true;
        }
        ++it;
    }
    for (const auto id : nodes)
        if (!seen.nodes_.contains(id) && !linked(id)) changed |= nodes_.erase(id) > 0;
    return changed;
}

std::optional<bool> known_fabric::has(const object& o) const {
    const auto at = [](const end_point& e) { return port(e.guid, static_cast<std::uint16_t>(e.port)); };
    if (o.ends.empty()) return false;
    if (o.kind == object_kind::sw) return nodes_.contains(o.ends.front().guid);
    if (o.kind == object_kind::node)
        return std::ranges::all_of(o.ends, [&](const end_point& e) { return ports_.contains(at(e)); });
    if (o.ends.size() < 2) return false;
    const auto found = links_.find(std::minmax(at(o.ends[0]), at(o.ends[1])));
    if (found == links_.end()) return false;
    if (o.mbps == 0) return true;
    const auto now = topo::gbps(found->second) * 1000;
    if (now <= 0) return std::nullopt;
    return now + 0.5 >= static_cast<double>(o.mbps);
}

std::string known_fabric::text() const {
    nlohmann::json out = {
        {"format", format}, {"nodes", nlohmann::json::array()}, {"links", nlohmann::json::array()}};
    for (const auto& [id, n] : nodes_) {
        const auto kind = node_kinds[n.kind == topo::node_kind::hca ? 1 : 0];
        nlohmann::json one = {{"guid", id}, {"kind", kind}, {"name", n.name}};
        if (!n.host.empty()) one["host"] = n.host;
        out["nodes"].push_back(std::move(one));
    }
    for (const auto& [at, rate] : links_)
        out["links"].push_back({{"a", at.first.first},
                                {"a_port", at.first.second},
                                {"b", at.second.first},
                                {"b_port", at.second.second},
                                {"lanes", rate.width},
                                {"lane_gbps10", rate.lane_gbps10}});
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

result<known_fabric> known_fabric::read(std::string_view text) {
    const auto all = nlohmann::json::parse(text, nullptr, false);
    const json_fields in(all);
    BANYAN_TRY(const auto version, in.number("format"));
    if (version != format)
        return fail(errc::invalid_input, fmt::format("it has format {}, expected {}", version, format));
    known_fabric out;
    BANYAN_TRY(const auto nodes, in.list("nodes"));
    for (const auto& one : nodes) {
        BANYAN_TRY(const auto id, one.number("guid"));
        auto& n = out.nodes_[id];
        BANYAN_TRY(const auto kind, one.one_of("kind", node_kinds));
        n.kind = kind == 1 ? topo::node_kind::hca : topo::node_kind::switch_node;
        BANYAN_CHECK(one.may("name", n.name));
        BANYAN_CHECK(one.may("host", n.host));
    }
    BANYAN_TRY(const auto links, in.list("links"));
    for (const auto& one : links) {
        BANYAN_TRY(const auto a, one.number("a"));
        BANYAN_TRY(const auto b, one.number("b"));
        BANYAN_TRY(const auto a_port, one.number("a_port", UINT16_MAX));
        BANYAN_TRY(const auto b_port, one.number("b_port", UINT16_MAX));
        topo::link_rate rate;
        BANYAN_CHECK(one.may("lanes", rate.width));
        BANYAN_CHECK(one.may("lane_gbps10", rate.lane_gbps10));
        out.put(std::minmax(port(a, static_cast<std::uint16_t>(a_port)),
                            port(b, static_cast<std::uint16_t>(b_port))),
                rate);
    }
    return out;
}

}  // namespace banyan::fault
