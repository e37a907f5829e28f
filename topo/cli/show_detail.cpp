// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/capacity.hpp>
#include <banyan/topo/routing.hpp>
#include <banyan/topo/switch_names.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "topo/cli/show.hpp"
#include "topo/counted.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::cli {
namespace {

using nlohmann::json;

json group_json(const fabric& f, const leaf_group& g) {
    auto rails = json::object();
    for (std::size_t rail = 0; rail < g.leaves.size(); ++rail) {
        const auto& leaf = f.switches[g.leaves[rail]];
        rails[std::to_string(rail_at(g, rail))] = {{"guid", hex(leaf.id)}, {"name", leaf.name}};
    }
    auto nodes = json::array();
    double confidence = 1;
    for (const auto h : g.hosts) {
        nodes.push_back(f.hosts[h].name);
        confidence = std::min(confidence, f.hosts[h].confidence);
    }
    return {{"id", g.id},
            {"rails", rails},
            {"nodes", nodes},
            {"spine_group", g.spine_group},
            {"island", g.island},
            {"port_alignment", g.alignment},
            {"least_confidence", confidence}};
}

json node_json(const fabric& f, const host& h) {
    auto hcas = json::array();
    for (const auto i : h.hcas) {
        const auto& c = f.hcas[i];
        json one{{"guid", hex(c.id)},
                 {"name", c.name},
                 {"rail", c.leaf == none ? json(nullptr) : json(c.rail)},
                 {"lid", c.lid},
                 {"planes", c.planes},
                 {"confidence", c.confidence},
                 {"gbps", gbps(c.rate) * c.planes}};
        if (c.leaf != none) {
            one["leaf"] = {{"guid", hex(f.switches[c.leaf].id)}, {"name", f.switches[c.leaf].name}};
            one["leaf_port"] = c.leaf_port;
        }
        hcas.push_back(std::move(one));
    }
    json out{{"name", h.name},
             {"leaf_group", h.leaf_group == none ? json(nullptr) : json(f.leaf_groups[h.leaf_group].id)},
             {"confidence", h.confidence},
             {"failure_domains", h.failure_domains},
             {"hcas", hcas}};
    if (!h.nvlink_domain.empty()) out["nvlink_domain"] = h.nvlink_domain;
    return out;
}

void print(const json& j) { fmt::print("{}\n", j.dump(1, ' ', true, json::error_handler_t::replace)); }

void print_group(const fabric& f, const leaf_group& g) {
    fmt::print("{}: {}, {}, spine group {}\n\n", g.id, counted(g.hosts.size(), "host"),
               f.untold.rails ? "rails not known" : counted(g.leaves.size(), "rail"), g.spine_group);
    fmt::print("{:<5} {:<36} {:<18} {:>5} {:>16}\n", "rail", "leaf", "GUID", "HCAs", "oversubscription");
    const auto loads = leaf_loads(f);
    const switch_names names(f);
    for (std::size_t rail = 0; rail < g.leaves.size(); ++rail) {
        const auto leaf = g.leaves[rail];
        std::size_t hcas = 0;
        for (const auto& c : f.hcas) hcas += c.leaf == leaf && c.host != none;
        const auto load =
            std::find_if(loads.begin(), loads.end(), [&](const auto& l) { return l.leaf == leaf; });
        fmt::print("{:<5} {:<36.36} {:<18} {:>5} {:>16}\n",
                   f.untold.rails ? "-" : std::to_string(rail_at(g, rail)), names.of(f, leaf),
                   f.untold.guids ? "-" : hex(f.switches[leaf].id),
                   f.untold.rails ? "-" : std::to_string(hcas),
                   load == loads.end() || load->up_gbps == 0 ? "-" : fmt::format("{:.4g}:1", load->ratio()));
    }
    fmt::print("\n{:<24} {:>5} {:>11}\n", "host", "HCAs", "confidence");
    for (const auto h : g.hosts)
        fmt::print("{:<24.24} {:>5} {:>11.2f}\n", f.hosts[h].name,
                   f.untold.rails ? "-" : std::to_string(f.hosts[h].hcas.size()), f.hosts[h].confidence);
}

void print_node(const fabric& f, const host& h) {
    fmt::print("{}: leaf group {} (confidence {:.2f}){}{}\n", h.name,
               h.leaf_group == none ? "none" : f.leaf_groups[h.leaf_group].id, h.confidence,
               h.nvlink_domain.empty() ? "" : ", NVLink domain ", h.nvlink_domain);
    for (const auto& d : h.failure_domains) fmt::print("  {}\n", d);
    fmt::print("\n{:<5} {:<22} {:<18} {:>6} {:<24} {:>5} {:>7} {:>5}\n", "rail", "HCA", "GUID", "LID", "leaf",
               "port", "Gbit/s", "sure");
    const switch_names names(f);
    for (const auto i : h.hcas) {
        const auto& c = f.hcas[i];
        const bool linked = c.leaf != none;  // without, it is on no rail
        const auto known = [](bool is, auto value) { return is ? fmt::format("{}", value) : "-"; };
        fmt::print("{:<5} {:<22.22} {:<18} {:>6} {:<24.24} {:>5} {:>7} {:>5.2f}\n",
                   known(linked && !f.untold.rails, c.rail), f.untold.rails ? "-" : c.name,
                   f.untold.guids ? "-" : hex(c.id), known(c.lid != 0, c.lid),
                   linked ? short_switch_name(names.of(f, c.leaf)) : "no link",
                   known(linked && !f.untold.cables, c.leaf_port),
                   known(!f.untold.rates, gbps(c.rate) * c.planes), c.confidence);
    }
}

}  // namespace

void show_json(const fabric& f) {
    json out{{"switches", f.switches.size()}, {"hcas", f.hcas.size()},
             {"hosts", f.hosts.size()},       {"links", f.links.size()},
             {"levels", levels(f)},           {"oversubscription", oversubscription(f)},
             {"capacity", json::array()},     {"leaf_groups", json::array()},
             {"excluded", json::array()},     {"defects", json::array()},
             {"wan", json::array()}};
    for (const auto& t : capacity(f))
        out["capacity"].push_back(
            {{"tier", t.name}, {"gbps", t.gbps}, {"bad_gbps", t.bad_gbps}, {"by_rail", t.by_rail}});
    out["leaves"] = json::array();
    for (const auto& l : leaf_loads(f))
        out["leaves"].push_back({{"guid", hex(f.switches[l.leaf].id)},
                                 {"name", f.switches[l.leaf].name},
                                 {"down_gbps", l.down_gbps},
                                 {"up_gbps", l.up_gbps},
                                 {"oversubscription", l.up_gbps > 0 ? json(l.ratio()) : json(nullptr)}});
    out["subnet_managers"] = json::array();
    for (const auto& m : f.managers)
        out["subnet_managers"].push_back({{"guid", hex(m.id)},
                                          {"name", m.name},
                                          {"lid", m.lid},
                                          {"priority", m.priority},
                                          {"state", static_cast<unsigned>(m.state)}});
    for (const auto& g : f.leaf_groups) out["leaf_groups"].push_back(group_json(f, g));
    for (const auto& e : f.excluded)
        out["excluded"].push_back({{"guid", hex(e.id)}, {"kind", e.kind}, {"name", e.name}, {"why", e.why}});
    for (const auto& d : f.defects)
        out["defects"].push_back({{"kind", d.kind},
                                  {"objects", d.objects},
                                  {"evidence", d.evidence},
                                  {"confidence", d.confidence}});
    out["untold"] = words_of(f.untold);
    for (const auto& w : f.wan) out["wan"].push_back({{"islands", {w.a, w.b}}, {"gbps", w.gbps}});
    print(out);
}

result<void> show_routes(const fabric& f, const std::string& path, bool as_json) {
    BANYAN_TRY(const auto text, read_file(path, max_routing_bytes));
    const auto tables = read_routing(text);
    if (!tables)
        return fail(tables.error().code, fmt::format("{}: {}", path, tables.error().what),
                    tables.error().hint);
    auto list = json::array();
    const switch_names names(f);
    if (!as_json)
        fmt::print("{:<22} {:>7} {:>7} {:>9} {:>7} {:>9}  {}\n", "links up from", "links", "least", "mean",
                   "most", "no route", "busiest");
    for (const auto& b : balance_of(f, *tables)) {
        const auto busiest = b.busiest.index == none
                                 ? ""
                                 : fmt::format("{} port {}", names.of(f, b.busiest.index), b.busiest.port);
        const auto below = b.level == 0 ? std::string("leaves") : fmt::format("level {}", b.level);
        if (!as_json)
            fmt::print("{:<22} {:>7} {:>7} {:>9.1f} {:>7} {:>9}  {:.32}\n", below, b.links, b.least, b.mean,
                       b.most, b.without_route, busiest);
        list.push_back({{"level", b.level},
                        {"links", b.links},
                        {"least", b.least},
                        {"mean", b.mean},
                        {"most", b.most},
                        {"without_route", b.without_route},
                        {"busiest", busiest}});
    }
    if (as_json) print(list);
    return {};
}

result<void> show_group(const fabric& f, const std::string& id, bool as_json) {
    for (const auto& g : f.leaf_groups)
        if (g.id == id) {
            as_json ? print(group_json(f, g)) : print_group(f, g);
            return {};
        }
    return fail(errc::not_found, fmt::format("there is no leaf group {}", id),
                "banyan-topo show lists the groups");
}

result<void> show_node(const fabric& f, const std::string& name, bool as_json) {
    const auto at = find_host(f, name);
    if (at == none)
        return fail(errc::not_found, fmt::format("{} is not on the fabric", name),
                    "banyan-topo show lists the hosts, and what was left out");
    as_json ? print(node_json(f, f.hosts[at])) : print_node(f, f.hosts[at]);
    return {};
}

}  // namespace banyan::topo::cli
