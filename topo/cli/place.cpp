// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <memory>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "train/admin_comment.hpp"

namespace banyan::topo::cli {
namespace {

struct place_options {
    fabric_input input;
    std::string shape, free, prefer, model;
    std::uint32_t nodes = 0, ranks_per_node = 0, spares = 0;
    bool json = false;
};

std::vector<std::string> names_of(const fabric& f, const std::vector<std::uint32_t>& hosts) {
    std::vector<std::string> out;
    for (const auto h : hosts) out.push_back(f.hosts[h].name);
    return out;
}

void print_json(const fabric& f, const request& r, const placement& p) {
    std::vector<std::string> by_rank(r.dims.ranks());
    const auto ranks = ranks_of_slots(r);
    for (std::size_t slot = 0; slot < p.nodes.size(); ++slot)
        for (const auto rank : ranks[slot]) by_rank[rank] = f.hosts[p.nodes[slot]].name;
    const auto s = spread_of(f, r, p);
    const nlohmann::json out{{"shape", r.dims.text()},
                             {"ranks", by_rank},
                             {"nodes", names_of(f, p.nodes)},
                             {"spares", names_of(f, p.spares)},
                             {"buddies", p.buddies},
                             {"groups", s.groups},
                             {"units", s.units},
                             {"straddling_units", s.straddling_units},
                             {"unlike", s.unlike},
                             {"fabric_unix_s", s.fabric_unix_s}};
    fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
}

/// In one line, which nodes are of another kind than most, and what these and the others are.
void print_unlike(const fabric& f, const placement& p, const std::vector<std::string>& unlike) {
    if (unlike.empty()) return;
    std::map<std::string, std::vector<std::string>> names;
    std::string most;
    for (const auto* hosts : {&p.nodes, &p.spares})
        for (const auto h : *hosts) {
            const auto& host = f.hosts[h];
            const auto what = fmt::format("{} HCAs of {:.4g} Gbit/s", host.rails,
                                          host.rails > 0 ? host.gbps / host.rails : 0);
            if (std::find(unlike.begin(), unlike.end(), host.name) == unlike.end())
                most = what;
            else
                names[what].push_back(host.name);
        }
    std::string line;
    for (const auto& [what, which] : names)
        line += fmt::format("{} {} {}", line.empty() ? "" : ",", compress_hostlist(which), what);
    fmt::print("too few equal nodes are free:{}; the others have {}\n", line, most);
}

void print_table(const fabric& f, const request& r, const placement& p) {
    const auto ranks = ranks_of_slots(r);
    const auto units = units_of_slots(r);
    fmt::print("{:>5}  {:<16} {:<6} {:>5}  {:<8} {:<24} {}\n", "slot", "node", "group", "unit", "copy at",
               "ranks", "first rank's place");
    for (std::size_t slot = 0; slot < p.nodes.size(); ++slot) {
        const auto& h = f.hosts[p.nodes[slot]];
        const auto at = r.dims.coordinates(ranks[slot].front());
        std::string place, text;
        for (const auto& e : r.dims.order) place += fmt::format("{}{} ", name_of(e.dim), at[e.dim]);
        for (const auto rank : ranks[slot]) text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
        if (text.size() > 24) text = text.substr(0, 21) + "...";
        fmt::print("{:>5}  {:<16} {:<6} {:>5}  {:<8} {:<24} {}\n", slot, h.name,
                   h.leaf_group == none ? "?" : f.leaf_groups[h.leaf_group].id, units[slot],
                   f.hosts[p.nodes[p.buddies[slot]]].name, text, place);
    }
    for (const auto spare : p.spares)
        fmt::print("spare  {:<16} {}\n", f.hosts[spare].name,
                   f.hosts[spare].leaf_group == none ? "?" : f.leaf_groups[f.hosts[spare].leaf_group].id);
    train::plan plan;
    plan.shape = r.dims.text();
    plan.ranks_per_node = r.ranks_per_node;
    plan.nodes = names_of(f, p.nodes);
    plan.spares = names_of(f, p.spares);
    plan.model = r.model;
    const auto s = spread_of(f, r, p);
    plan.spread = train::spread_in_words(r, s);
    print_unlike(f, p, s.unlike);
    fmt::print("{}\n", train::admin_comment(plan));
}

result<int> run(const place_options& o) {
    BANYAN_TRY(const auto f, o.input.load());
    BANYAN_TRY(const auto dims, parse_shape(o.shape));
    BANYAN_TRY(const auto free, hosts_from(f, o.free));
    std::uint32_t total = o.nodes;
    if (total == 0 && o.ranks_per_node > 0) total = dims.ranks() / o.ranks_per_node + o.spares;
    if (total == 0)
        return fail(errc::invalid_input, "neither --nodes nor --ranks-per-node is given", "add one of them");
    BANYAN_TRY(auto r, make_request(dims, total, o.ranks_per_node, o.spares));
    if (!o.model.empty()) {
        BANYAN_TRY(r.model, parse_model(o.model));
    }
    std::vector<std::uint32_t> prefer;
    if (!o.prefer.empty()) {
        BANYAN_TRY(prefer, hosts_from(f, o.prefer));
    }
    BANYAN_TRY(const auto p, place(f, free, r, prefer));
    o.json ? print_json(f, r, p) : print_table(f, r, p);
    return fine;
}

}  // namespace

void add_place(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<place_options>();
    auto* sub = app.add_subcommand("place", "Say where a job would go, as slurmctld decides it");
    o->input.add_to(*sub);
    sub->add_option("--shape", o->shape, "parallel dimensions, innermost first, such as tp=8,pp=4,dp=2")
        ->required();
    sub->add_option("--nodes", o->nodes, "nodes of the job, spares included");
    sub->add_option("--ranks-per-node", o->ranks_per_node, "ranks on each node");
    sub->add_option("--spares", o->spares, "nodes kept as spares");
    sub->add_option("--free", o->free, "host list of the nodes to choose from (default: all)");
    sub->add_option("--prefer", o->prefer, "host list of nodes to take first");
    sub->add_option("--model", o->model,
                    "what the bytes that decide follow from, such as hidden=8192,layers=80,cp=ring (or "
                    "cp=all-to-all); without it those of usual models");
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
