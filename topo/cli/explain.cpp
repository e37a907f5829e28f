// SPDX-License-Identifier: BSD-3-Clause
//
// A placement explained: which dimension crosses which tier, what that moves in a step, and what Slurm's own
// rank order on the same nodes would cost.
#include <algorithm>
#include <memory>
#include <numeric>

#include <banyan/topo/switch_names.hpp>
#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/running_job.hpp"
#include "topo/counted.hpp"

namespace banyan::topo::cli {
namespace {

struct explain_options {
    fabric_input input;
    running_job job;
    std::string plan, model, routes;
    bool json = false;
};

struct explanation {
    request asked;
    placement placed;
    placement_cost cost, in_name_order;
    placement_cost arranged;  ///< with these nodes in the best order
    std::optional<link_load> by_tables;
};

result<explanation> explain(const fabric& f, const train::plan& p, const explain_options& o) {
    explanation out;
    BANYAN_TRY(const auto dims, parse_shape(p.shape));
    BANYAN_TRY(out.asked,
               make_request(dims, static_cast<std::uint32_t>(p.nodes.size()), p.ranks_per_node, 0));
    out.asked.model = p.model;
    if (!o.model.empty()) {
        BANYAN_TRY(out.asked.model, parse_model(o.model));
    }
    for (const auto& name : p.nodes) {
        const auto host = find_host(f, name);
        if (host == none)
            return fail(errc::not_found, fmt::format("{} is not on the fabric", name),
                        "is the snapshot an old one?");
        out.placed.nodes.push_back(host);
    }
    out.cost = cost_of(f, out.asked, out.placed);
    if (!o.routes.empty()) {
        BANYAN_TRY(const auto text, read_file(o.routes, max_routing_bytes));
        BANYAN_TRY(const auto tables, read_routing(text));
        out.by_tables = busiest_link(f, out.asked, out.placed, tables);
    }
    auto by_name = out.placed;  // hosts are sorted by name, and so are Slurm's ranks
    std::sort(by_name.nodes.begin(), by_name.nodes.end());
    out.in_name_order = cost_of(f, out.asked, by_name);
    BANYAN_TRY(const auto best, arrange(f, by_name.nodes, out.asked));
    out.arranged = cost_of(f, out.asked, best);
    return out;
}

std::string bytes_text(double bytes) {
    return bytes == 0 ? "-" : format_bytes(static_cast<std::uint64_t>(bytes));
}

nlohmann::json bytes_json(const by_tier<double>& bytes) {
    nlohmann::json out;
    for (const auto t : all_tiers) out[std::string(name_of(t))] = bytes[t];
    return out;
}

nlohmann::json cost_json(const placement_cost& c) {
    nlohmann::json out{{"above_leaf_bytes", c.above_leaf()},
                       {"busiest_uplink_bytes", c.busiest_uplink},
                       {"dimensions", nlohmann::json::array()}};
    out["bytes"] = bytes_json(c.bytes);
    for (const auto& d : c.dimensions)
        out["dimensions"].push_back({{"dimension", name_of(d.dim)},
                                     {"groups", d.groups},
                                     {"over_leaf_groups", d.over_leaf_groups},
                                     {"over_spine_groups", d.over_spine_groups},
                                     {"largest_spread", d.largest_spread},
                                     {"bytes", bytes_json(d.bytes)}});
    return out;
}

/// A link of the job's that new jobs are kept off, or that counts errors.
struct unsound_link {
    std::string ends;
    std::uint32_t nodes = 0;  ///< of the job that may meet it
    bool avoided = false;
};

/// The links of its hosts, and, where it goes over spines, those that lead up from its leaves.
std::vector<unsound_link> unsound_links(const fabric& f, const placement& p, const switch_names& names) {
    std::vector<std::uint32_t> nodes_of(f.leaf_groups.size()), of_leaf(f.switches.size());
    std::vector<bool> mine(f.hosts.size());
    std::uint32_t groups = 0;
    for (const auto h : p.nodes) {
        mine[h] = true;
        if (const auto g = f.hosts[h].leaf_group; g != none) groups += nodes_of[g]++ == 0;
    }
    if (groups > 1)
        for (std::size_t g = 0; g < nodes_of.size(); ++g)
            for (const auto leaf : f.leaf_groups[g].leaves) of_leaf[leaf] += nodes_of[g];
    const auto text = [&](const port_ref& e) {
        return fmt::format("{} port {}",
                           e.kind == node_kind::hca ? f.hcas[e.index].name : names.of(f, e.index), e.port);
    };
    std::vector<unsound_link> out;
    for (const auto& l : f.links) {
        if (!is_unsound(l)) continue;
        std::uint32_t nodes = 0;
        for (const auto& [e, other] : {std::pair(l.a, l.b), std::pair(l.b, l.a)})
            if (e.kind == node_kind::hca)
                nodes += f.hcas[e.index].host != none && mine[f.hcas[e.index].host];
            else if (other.kind == node_kind::switch_node && f.switches[e.index].level == 0)
                nodes += of_leaf[f.switches[e.index].box];
        if (nodes > 0) out.push_back({text(l.a) + " <-> " + text(l.b), nodes, l.avoid});
    }
    return out;
}

nlohmann::json unsound_json(const std::vector<unsound_link>& all) {
    auto out = nlohmann::json::array();
    for (const auto& l : all) out.push_back({{"link", l.ends}, {"nodes", l.nodes}, {"avoided", l.avoided}});
    return out;
}

void print_unsound(const std::vector<unsound_link>& all) {
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < std::min(all.size(), shown); ++i)
        fmt::print("{} for {}: {}\n", all[i].avoided ? "a link that new jobs are kept off" : "a bad link",
                   counted(all[i].nodes, "node"), all[i].ends);
    if (all.size() > shown) fmt::print("and {}\n", counted(all.size() - shown, "more such link"));
}

void print_text(const fabric& f, const train::plan& p, const explanation& r) {
    fmt::print("{} on {}\n", r.asked.dims.text(), compress_hostlist(p.nodes));
    const auto s = spread_of(f, r.asked, r.placed);
    for (const auto& [group, nodes] : s.groups) fmt::print("  {}: {}\n", group, counted(nodes, "node"));
    const bool nvlink = std::ranges::any_of(f.hosts, [](const host& h) { return h.nvlink != none; });
    fmt::print("\n{:<4} {:>7} {:>12} {:>13} {:>7}{} {:>11} {:>11} {:>11} {:>11}\n", "dim", "groups",
               "> leaf group", "> spine group", "spread", nvlink ? "      nvlink" : "", "leaf", "spine",
               "core", "wan");
    for (const auto& d : r.cost.dimensions)
        fmt::print("{:<4} {:>7} {:>12} {:>13} {:>7}{} {:>11} {:>11} {:>11} {:>11}\n", name_of(d.dim),
                   d.groups, d.over_leaf_groups, d.over_spine_groups, d.largest_spread,
                   nvlink ? fmt::format(" {:>11}", bytes_text(d.bytes[tier::nvlink])) : "",
                   bytes_text(d.bytes[tier::leaf]), bytes_text(d.bytes[tier::spine]),
                   bytes_text(d.bytes[tier::core]), bytes_text(d.bytes[tier::wan]));
    const auto above = r.cost.above_leaf(), by_name = r.in_name_order.above_leaf();
    fmt::print("\nabove the leaves in a step   {:>11}\n", bytes_text(above));
    fmt::print("ranks in name order          {:>11}\n", bytes_text(by_name));
    // A training that grew or lost a node keeps its other ranks where they are.
    if (const auto best = r.arranged.above_leaf(); best < above)
        fmt::print("best rank order on the nodes {:>11}\n", bytes_text(best));
    fmt::print("busiest uplink, spread ideal {:>11}\n", bytes_text(r.cost.busiest_uplink));
    if (const auto& l = r.by_tables) {
        fmt::print("busiest link by the tables   {:>11}{}\n", bytes_text(l->bytes),
                   l->bytes > 0
                       ? fmt::format("  {} port {}", switch_names(f).of(f, l->from.index), l->from.port)
                       : "");
        if (l->without_route > 0)
            fmt::print("pairs of ranks that the tables have no way for, left out: {}\n", l->without_route);
    }
    print_unsound(unsound_links(f, r.placed, switch_names(f)));
    if (p.later)
        fmt::print("waiting {} minutes would have saved {:>3} % of the weighted bytes\n", p.later->minutes,
                   p.later->per_cent);
    fmt::print("\nreckoned for {} (--model changes it)\n", text_of(r.asked.model.value_or(model_size{})));
}

result<int> run(const explain_options& o) {
    if (o.job.id.empty() == o.plan.empty())
        return fail(errc::invalid_input, "one of JOBID and --plan is needed",
                    "give the number of a running job");
    BANYAN_TRY(const auto f, o.input.load());
    BANYAN_TRY(const auto p, o.plan.empty() ? plan_of(f, o.job) : plan_from(o.plan));
    BANYAN_TRY(const auto r, explain(f, p, o));
    if (o.json) {
        nlohmann::json out{{"shape", p.shape},
                           {"nodes", p.nodes},
                           {"spares", p.spares},
                           {"placed", cost_json(r.cost)},
                           {"in_name_order", cost_json(r.in_name_order)},
                           {"arranged", cost_json(r.arranged)},
                           {"unsound_links", unsound_json(unsound_links(f, r.placed, switch_names(f)))}};
        if (const auto& l = r.by_tables)
            out["by_tables"] = {{"busiest_link_bytes", l->bytes}, {"pairs_without_route", l->without_route}};
        if (p.later) out["waiting"] = {{"minutes", p.later->minutes}, {"saved_per_cent", p.later->per_cent}};
        fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
    } else {
        print_text(f, p, r);
    }
    return fine;
}

}  // namespace

void add_explain(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<explain_options>();
    auto* sub = app.add_subcommand("explain", "Say what a job's placement costs, by dimension and tier");
    sub->add_option("JOBID", o->job.id, "a running job, asked of scontrol");
    sub->add_option(
        "--shape", o->job.shape,
        "of JOBID where Slurm chose its nodes: its --train-parallel; its ranks are in Slurm's order");
    sub->add_option("--spares", o->job.spares, "of JOBID with --shape: its --train-spares");
    o->input.add_option_to(*sub);
    sub->add_option(
        "--plan,--job", o->plan,
        "a job's plan (SPANK_BANYAN_PLAN in its prolog's environment) or what place --json prints,\n"
        "or a file with it; - is standard input");
    sub->add_option("--model", o->model,
                    "what the bytes follow from, such as hidden=8192,layers=80,seq=8192,micro=16");
    sub->add_option("--routes", o->routes,
                    "forwarding tables (dump_lfts), for the load of the busiest link under static routing");
    sub->add_option("--program", o->job.program, "the scontrol to run (default scontrol)");
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
