// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/show.hpp"

#include <map>
#include <memory>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/switch_names.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/counted.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::cli {
namespace {

constexpr std::size_t shown_groups = 24;
constexpr std::size_t shown_exclusions = 3;  ///< of each kind
constexpr double sure = 0.995;

std::size_t at_level(const fabric& f, unsigned level) {
    std::size_t n = 0;
    for (const auto& sw : f.switches) n += sw.level == level;
    return n;
}

void print_groups(const fabric& f) {
    fmt::print("{:<7} {:>5} {:>5}  {:<28} {}\n", "group", "hosts", "rails", "leaves, one per rail", "nodes");
    const switch_names names(f);
    for (std::size_t i = 0; i < f.leaf_groups.size() && i < shown_groups; ++i) {
        const auto& g = f.leaf_groups[i];
        std::vector<std::string> leaves, nodes;
        for (const auto l : g.leaves) leaves.push_back(short_switch_name(names.of(f, l)));
        for (const auto h : g.hosts) nodes.push_back(f.hosts[h].name);
        fmt::print("{:<7} {:>5} {:>5}  {:<28} {}\n", g.id, g.hosts.size(),
                   f.untold.rails ? "-" : std::to_string(g.leaves.size()), cut(compress_hostlist(leaves), 28),
                   cut(compress_hostlist(nodes), 44));
    }
    if (f.leaf_groups.size() > shown_groups)
        fmt::print("... and {} more groups; --json has them all\n", f.leaf_groups.size() - shown_groups);
}

/// With as many digits as tell it from 1:1.
std::string oversubscribed(double ratio) {
    for (int digits = 3; digits < 9; ++digits)
        if (const auto text = fmt::format("{:.{}g}", ratio, digits); text != "1")
            return fmt::format("oversubscribed {}:1", text);
    return "non-blocking";
}

/// The leaves with the least and the most, and how many have that.
void print_leaves(const fabric& f) {
    const auto loads = leaf_loads(f);
    const switch_names names(f);
    const leaf_load *least = nullptr, *most = nullptr;
    for (const auto& l : loads) {
        if (l.up_gbps == 0) continue;
        if (!least || l.ratio() < least->ratio()) least = &l;
        if (!most || l.ratio() > most->ratio()) most = &l;
    }
    if (!least) return;
    const auto like = [&](const leaf_load& one) {
        const auto n = std::count_if(loads.begin(), loads.end(),
                                     [&](const auto& l) { return l.ratio() == one.ratio(); });
        return n == static_cast<std::ptrdiff_t>(loads.size()) ? std::string("all")
               : n == 1                                       ? short_switch_name(names.of(f, one.leaf))
                        : fmt::format("{} and {} more", short_switch_name(names.of(f, one.leaf)), n - 1);
    };
    if (least->ratio() == most->ratio())
        fmt::print("oversubscription of a leaf: {:.4g}:1, {}\n", least->ratio(), like(*least));
    else
        fmt::print("oversubscription of a leaf: least {:.4g}:1 ({}), most {:.4g}:1 ({})\n", least->ratio(),
                   like(*least), most->ratio(), like(*most));
}

void print_managers(const fabric& f) {
    static constexpr const char* roles[] = {"inactive", "discovering", "standby", "master"};
    for (const auto& m : f.managers)
        fmt::print("subnet manager: {} ({}, LID {}, priority {}): {}\n",
                   m.name.empty() ? "not a node of this fabric" : m.name, hex(m.id), m.lid, m.priority,
                   roles[static_cast<std::size_t>(m.state)]);
    if (!f.managers.empty()) fmt::print("\n");
}

void print_capacity(const fabric& f) {
    fmt::print("\n{:<20} {:>12}  {}\n", "capacity", "Gbit/s", "least and most of a rail");
    const auto tiers = capacity(f);
    for (const auto& t : tiers) {
        std::string rails;
        if (t.by_rail.size() > 1) {
            const auto [least, most] = std::minmax_element(t.by_rail.begin(), t.by_rail.end());
            rails =
                *least == *most ? fmt::format("{} each", *least) : fmt::format("{} and {}", *least, *most);
        }
        if (t.bad_gbps > 0) rails += fmt::format("{}{} on bad links", rails.empty() ? "" : "; ", t.bad_gbps);
        fmt::print("{:<20} {:>12}  {}\n", t.name, t.gbps, rails);
    }
    const auto ratio = oversubscription(f);
    fmt::print("leaves are {}\n", tiers.empty() || tiers[0].gbps == 0 ? "without a host: nothing to carry"
                                  : ratio == 0                        ? "the top: nothing leads up"
                                  : ratio <= 1                        ? "non-blocking"
                                                                      : oversubscribed(ratio));
    print_leaves(f);
}

void print_confidence(const fabric& f) {
    std::size_t hosts = 0, hcas = 0;
    for (const auto& h : f.hosts) hosts += h.confidence < sure;
    for (const auto& h : f.hcas) hcas += h.host != none && h.confidence < sure;
    fmt::print("\nsure of the leaf group of {} of {}", f.hosts.size() - hosts,
               counted(f.hosts.size(), "host"));
    if (hcas > 0) fmt::print("; {} attributed by evidence, not by name", counted(hcas, "HCA is", "HCAs are"));
    fmt::print("\n");
}

void print_left_out(const fabric& f) {
    std::map<std::string, std::vector<const exclusion*>> by_kind;
    for (const auto& e : f.excluded) by_kind[e.kind].push_back(&e);
    fmt::print("left out:{}\n", by_kind.empty() ? " nothing" : "");
    for (const auto& [kind, list] : by_kind) {
        fmt::print("  {} {}\n", list.size(), kind);
        for (std::size_t i = 0; i < list.size() && i < shown_exclusions; ++i)
            fmt::print("    {}\n",
                       cut(fmt::format("{} {}: {}", hex(list[i]->id), list[i]->name, list[i]->why), 94));
        if (list.size() > shown_exclusions) fmt::print("    ... --json has them all\n");
    }
}

void print_defects(const fabric& f) {
    std::map<std::string, std::size_t> by_kind;
    std::size_t off = 0;
    for (const auto& d : f.defects)
        if (is_notice(d))
            ++off;
        else
            ++by_kind[d.kind];
    std::string out;
    for (const auto& [kind, n] : by_kind) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, kind);
    fmt::print("defects: {}\n", out.empty() ? "none" : out + " (banyan-topo check tells)");
    if (off > 0) fmt::print("off: {} without a host\n", counted(off, "leaf", "leaves"));
}

}  // namespace

std::string hex(guid id) { return fmt::format("0x{:016x}", id); }

void show_text(const fabric& f) {
    const auto& untold = f.untold;
    fmt::print("{}, {}{} ({}, {}, {}), {}{}\n\n", counted(f.hosts.size(), "host"),
               untold.rails ? "" : counted(f.hcas.size(), "HCA") + ", ",
               counted(f.switches.size(), "switch", "switches"), counted(at_level(f, 0), "leaf", "leaves"),
               counted(at_level(f, 1), "spine"), counted(at_level(f, 2), "core"),
               untold.cables ? "" : counted(f.links.size(), "link") + ", ", counted(levels(f), "level"));
    print_managers(f);
    print_groups(f);
    if (!untold.rates) print_capacity(f);
    if (untold != untold_facts{})
        fmt::print("\nnot known, since the source does not tell: {}\n", fmt::join(words_of(untold), ", "));
    print_confidence(f);
    print_left_out(f);
    print_defects(f);
}

void add_show(CLI::App& app, action& chosen) {
    struct options {
        fabric_input input;
        std::string node, group, routes;
        bool json = false;
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("show", "Count hosts, leaf groups, rails and spines, and what they carry");
    o->input.add_to(*sub);
    sub->add_option("--node", o->node, "one host: its HCAs, rails, leaves and ports");
    sub->add_option("--group", o->group, "one leaf group: its leaves and hosts");
    sub->add_option("--routes", o->routes, "forwarding tables (dump_lfts): how evenly they use the links up");
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            if (!o->node.empty() + !o->group.empty() + !o->routes.empty() > 1)
                return fail(errc::invalid_input, "--node, --group and --routes exclude each other");
            BANYAN_TRY(const auto f, o->input.load());
            if (!o->node.empty())
                BANYAN_CHECK(show_node(f, o->node, o->json));
            else if (!o->group.empty())
                BANYAN_CHECK(show_group(f, o->group, o->json));
            else if (!o->routes.empty())
                BANYAN_CHECK(show_routes(f, o->routes, o->json));
            else
                o->json ? show_json(f) : show_text(f);
            BANYAN_CHECK(o->input.need_hosts(f));
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
