// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {
namespace {

struct options {
    std::string input;
    bool json = false;
};

std::string hex(guid id) { return fmt::format("0x{:016x}", id); }

unsigned gbps(const link_rate& r) { return unsigned{r.width} * r.lane_gbps10 / 10; }

int top_level(const fabric& f) {
    int top = -1;
    for (const auto& s : f.switches)
        if (s.level != UINT8_MAX) top = std::max(top, int{s.level});
    return top;
}

/// Gbit/s from hosts into the leaves over Gbit/s from the leaves upwards: 1 = non-blocking; 0 when nothing
/// leads up.
double oversubscription(const fabric& f) {
    double down = 0, up = 0;
    for (const auto& l : f.links) {
        const bool between_switches =
            l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node;
        if (between_switches && (f.switches[l.a.index].level == 0) != (f.switches[l.b.index].level == 0))
            up += gbps(l.rate);
        const auto& hca_end = l.a.kind == node_kind::hca ? l.a : l.b;
        if (!between_switches && f.hcas[hca_end.index].host != none) down += gbps(l.rate);
    }
    return up > 0 ? down / up : 0;
}

nlohmann::json groups_json(const fabric& f) {
    auto out = nlohmann::json::array();
    for (const auto& g : f.leaf_groups) {
        auto rails = nlohmann::json::object();
        for (std::size_t rail = 0; rail < g.leaves.size(); ++rail) {
            const auto& leaf = f.switches[g.leaves[rail]];
            rails[std::to_string(rail)] = {{"guid", hex(leaf.id)}, {"name", leaf.name}};
        }
        std::vector<std::string> nodes;
        for (const auto h : g.hosts) nodes.push_back(f.hosts[h].name);
        out.push_back({{"id", g.id}, {"rails", rails}, {"nodes", nodes}, {"spine_group", g.spine_group}});
    }
    return out;
}

void print_json(const fabric& f) {
    nlohmann::json out{{"switches", f.switches.size()},     {"hcas", f.hcas.size()},
                       {"hosts", f.hosts.size()},           {"links", f.links.size()},
                       {"levels", top_level(f) + 1},        {"oversubscription", oversubscription(f)},
                       {"leaf_groups", groups_json(f)},     {"excluded", nlohmann::json::array()},
                       {"defects", nlohmann::json::array()}};
    for (const auto& e : f.excluded)
        out["excluded"].push_back({{"guid", hex(e.id)}, {"kind", e.kind}, {"name", e.name}});
    for (const auto& d : f.defects)
        out["defects"].push_back({{"kind", d.kind},
                                  {"objects", d.objects},
                                  {"evidence", d.evidence},
                                  {"confidence", d.confidence}});
    fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
}

std::string short_name(const std::string& switch_name) {
    // "MF0;leaf-01:MQM9790/U1" -> "leaf-01"
    const auto start = switch_name.find(';');
    const auto name = switch_name.substr(start == std::string::npos ? 0 : start + 1);
    return name.substr(0, name.find(':'));
}

void print_groups(const fabric& f) {
    fmt::print("{:<7} {:>5} {:>5}  {:<28} {}\n", "group", "hosts", "rails", "leaves, one per rail", "nodes");
    constexpr std::size_t shown = 24;
    for (std::size_t i = 0; i < f.leaf_groups.size() && i < shown; ++i) {
        const auto& g = f.leaf_groups[i];
        std::vector<std::string> leaves, nodes;
        for (const auto l : g.leaves) leaves.push_back(short_name(f.switches[l].name));
        for (const auto h : g.hosts) nodes.push_back(f.hosts[h].name);
        auto leaf_text = compress_hostlist(leaves), node_text = compress_hostlist(nodes);
        if (leaf_text.size() > 28) leaf_text = leaf_text.substr(0, 25) + "...";
        if (node_text.size() > 44) node_text = node_text.substr(0, 41) + "...";
        fmt::print("{:<7} {:>5} {:>5}  {:<28} {}\n", g.id, g.hosts.size(), g.leaves.size(), leaf_text,
                   node_text);
    }
    if (f.leaf_groups.size() > shown)
        fmt::print("... and {} more groups; --json has them all\n", f.leaf_groups.size() - shown);
}

void print_text(const fabric& f) {
    std::map<std::string, std::size_t> left_out, defects;
    for (const auto& e : f.excluded) ++left_out[e.kind];
    for (const auto& d : f.defects) ++defects[d.kind];
    std::size_t spines = 0, cores = 0;
    for (const auto& s : f.switches) {
        spines += s.level == 1;
        cores += s.level == 2;
    }
    fmt::print("{} hosts, {} HCAs, {} switches ({} spines, {} cores), {} links, {} levels\n", f.hosts.size(),
               f.hcas.size(), f.switches.size(), spines, cores, f.links.size(), top_level(f) + 1);
    const auto ratio = oversubscription(f);
    fmt::print("leaves: {}\n\n", ratio == 0   ? "nothing leads up"
                                 : ratio <= 1 ? "non-blocking"
                                              : fmt::format("oversubscribed {:.2g}:1", ratio));
    print_groups(f);
    const auto counts = [](const std::map<std::string, std::size_t>& by_kind) {
        std::string out;
        for (const auto& [kind, n] : by_kind) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, kind);
        return out.empty() ? std::string("none") : out;
    };
    fmt::print("\nleft out: {}\ndefects: {}{}\n", counts(left_out), counts(defects),
               defects.empty() ? "" : " (banyan-topo check tells)");
}

}  // namespace

void add_show(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("show", "Count hosts, leaf groups, rails and spines");
    sub->add_option("FABRIC", o->input, "output of ibnetdiscover, or a snapshot")->required();
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto f, load_fabric(o->input));
            o->json ? print_json(f) : print_text(f);
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
