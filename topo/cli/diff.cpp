// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <memory>
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/diff.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {
namespace {

nlohmann::json end_json(const link_end& e) {
    return {{"guid", fmt::format("0x{:016x}", e.id)}, {"node", e.node_name}, {"port", e.port}};
}

nlohmann::json links_json(const std::vector<changed_link>& links) {
    auto out = nlohmann::json::array();
    for (const auto& l : links) out.push_back({{"ends", {end_json(l.a), end_json(l.b)}}});
    return out;
}

nlohmann::json rates_json(const std::vector<changed_link>& links) {
    auto out = nlohmann::json::array();
    for (const auto& l : links)
        out.push_back({{"ends", {end_json(l.a), end_json(l.b)}},
                       {"gbps", {{"before", gbps(l.before)}, {"after", gbps(l.after)}}}});
    return out;
}

nlohmann::json nodes_json(const std::vector<changed_node>& nodes) {
    auto out = nlohmann::json::array();
    for (const auto& n : nodes) out.push_back({{"guid", fmt::format("0x{:016x}", n.id)}, {"name", n.name}});
    return out;
}

nlohmann::json moved_json(const std::vector<moved_link>& links) {
    auto out = nlohmann::json::array();
    for (const auto& l : links)
        out.push_back(
            {{"port", end_json(l.kept)}, {"before", end_json(l.before)}, {"after", end_json(l.after)}});
    return out;
}

/// Nodes with how many links came or went with them; the other links are returned.
std::vector<const changed_link*> print_nodes(const std::vector<changed_node>& nodes,
                                             const std::vector<changed_link>& links, char sign) {
    std::map<guid, std::size_t> links_of;
    for (const auto& n : nodes) links_of[n.id] = 0;
    std::vector<const changed_link*> others;
    for (const auto& l : links) {
        bool with_node = false;
        for (const auto* e : {&l.a, &l.b})
            if (const auto at = links_of.find(e->id); at != links_of.end()) ++at->second, with_node = true;
        if (!with_node) others.push_back(&l);
    }
    for (const auto& n : nodes) fmt::print("{} node  {} with {} links\n", sign, n.name, links_of[n.id]);
    return others;
}

void print_text(const fabric_diff& d) {
    const auto lost = print_nodes(d.lost_nodes, d.lost_links, '-');
    const auto fresh = print_nodes(d.new_nodes, d.new_links, '+');
    // What moved is told as that, not as a loss and a gain.
    std::set<std::pair<guid, std::uint16_t>> moved;
    for (const auto& l : d.moved_links) {
        moved.insert({l.kept.id, l.kept.port});
        fmt::print("> link  {}: from {} to {}\n", l.kept.text(), l.before.text(), l.after.text());
    }
    const auto print_links = [&](const std::vector<const changed_link*>& links, char sign) {
        for (const auto* l : links)
            if (!moved.contains({l->a.id, l->a.port}) && !moved.contains({l->b.id, l->b.port}))
                fmt::print("{} link  {} - {}\n", sign, l->a.text(), l->b.text());
    };
    print_links(lost, '-');
    print_links(fresh, '+');
    for (const auto& l : d.changed_rates)
        fmt::print("~ link  {} - {}: {} -> {} Gbit/s\n", l.a.text(), l.b.text(), gbps(l.before),
                   gbps(l.after));
    if (d.empty()) fmt::print("no difference\n");
}

}  // namespace

void add_diff(CLI::App& app, action& chosen) {
    struct options {
        std::string before, after;
        bool json = false;
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand(
        "diff", "Links and nodes that came, went, moved or changed speed; exit code 1 when any did");
    sub->add_option("BEFORE", o->before, "output of ibnetdiscover, or a snapshot")->required();
    sub->add_option("AFTER", o->after, "the same, later")->required();
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto before, load_fabric(o->before));
            BANYAN_TRY(const auto after, load_fabric(o->after));
            const auto d = diff(before, after);
            if (o->json) {
                const nlohmann::json out{{"lost_links", links_json(d.lost_links)},
                                         {"new_links", links_json(d.new_links)},
                                         {"moved_links", moved_json(d.moved_links)},
                                         {"changed_rates", rates_json(d.changed_rates)},
                                         {"lost_nodes", nodes_json(d.lost_nodes)},
                                         {"new_nodes", nodes_json(d.new_nodes)}};
                fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
            } else {
                print_text(d);
            }
            return d.empty() ? fine : found_something;
        };
    });
}

}  // namespace banyan::topo::cli
