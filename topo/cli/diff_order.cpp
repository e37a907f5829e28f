// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/diff_order.hpp"

#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <fmt/format.h>

#include "topo/cli/csv.hpp"
#include "topo/counted.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::cli {
namespace {

using change = work_item::change;

struct heading {
    change what;
    const char *sign, *title, *to_do;
};
constexpr heading headings[] = {
    {change::lost_switch, "-", "switches that are gone",
     "look at their power; at their cables if they come back without them"},
    {change::lost_host, "-", "hosts that are gone",
     "look at their power; at their cables if they come back without them"},
    {change::lost_hca, "-", "HCAs that are gone", "look at the host and its cable"},
    {change::lost_link, "-", "cables without a link",
     "reseat at both ends, then exchange the cable, then look at the HCA"},
    {change::moved, ">", "cables that lead elsewhere",
     "put them back, or accept it with banyan-topo snapshot"},
    {change::slower, "~", "slower links", "reseat at both ends, then exchange the cable"},
    {change::faster, "~", "faster links", "nothing, if it was meant"},
    {change::added, "+", "new", "nothing, if it was meant; banyan-topo snapshot accepts it"},
};

std::string number(std::size_t n) { return n == 0 ? "" : std::to_string(n); }
bool is_node(const work_item& i) { return i.to.id == 0; }
std::string node(const link_end& e) {
    return e.kind == node_kind::switch_node ? short_switch_name(e.node_name) : e.node_name;
}

std::string where(const link_end& e, const std::string& connector) {
    // Most HCAs have one port.
    if (e.kind == node_kind::hca && e.port == 1) return node(e);
    return connector.empty() ? fmt::format("{} port {}", node(e), e.port)
                             : fmt::format("{} port {} ({})", node(e), e.port, connector);
}

std::string note(const work_item& i) {
    std::string out;
    if (is_node(i))
        out = counted(i.links, "link");
    else if (i.what == change::moved)
        out = i.to_do;
    else if (i.what == change::slower || i.what == change::faster)
        out = fmt::format("{} -> {} Gbit/s", gbps(i.before), gbps(i.after));
    for (const auto& more : {i.leaf_group, i.place})
        if (!more.empty()) out += (out.empty() ? "" : ", ") + more;
    return out;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows[0].size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    for (const auto& row : rows) {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format(" {:<{}}", row[i], widths[i] + 1);
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print("{}\n", line);
    }
}

}  // namespace

void print_order(const std::vector<work_item>& items) {
    for (auto at = items.begin(); at != items.end();) {
        const auto end = std::find_if(at, items.end(), [&](const auto& i) { return i.what != at->what; });
        for (const auto& h : headings)
            if (h.what == at->what)
                fmt::print("{}{} {} ({}): {}\n", at == items.begin() ? "" : "\n", h.sign, h.title, end - at,
                           h.to_do);
        std::vector<std::vector<std::string>> cables{{"switch", "port", "connector", "leads to", ""}};
        for (; at != end; ++at)
            if (is_node(*at))
                fmt::print("    {}: {}\n", node(at->at), note(*at));
            else
                cables.push_back({node(at->at), number(at->at.port), at->connector,
                                  where(at->to, at->to_connector), note(*at)});
        if (cables.size() > 1) print_table(cables);
    }
}

void print_order_csv(const std::vector<work_item>& items) {
    fmt::print("{}",
               csv_row({"change",     "switch",     "switch_guid",     "port",   "connector", "other_end",
                        "other_guid", "other_port", "other_connector", "was_at", "was_port",  "was_connector",
                        "host",       "device",     "leaf_group",      "place",  "links",     "gbps_before",
                        "gbps_after", "what_to_do"}));
    const auto id = [](guid g) { return g == 0 ? std::string() : fmt::format("0x{:016x}", g); };
    const auto rate = [](const link_rate& r) {
        return r.width == 0 ? std::string() : fmt::format("{}", gbps(r));
    };
    for (const auto& i : items) {
        // A host or an HCA that came or went is no switch.
        const bool at_switch = i.at.kind == node_kind::switch_node;
        const auto& other = at_switch ? i.to : i.at;
        const auto here = at_switch ? i.at : link_end{};
        fmt::print("{}", csv_row({std::string(name_of(i.what)),
                                  node(here),
                                  id(here.id),
                                  number(here.port),
                                  i.connector,
                                  node(other),
                                  id(other.id),
                                  number(other.port),
                                  i.to_connector,
                                  node(i.was),
                                  number(i.was.port),
                                  i.was_connector,
                                  i.host,
                                  i.device,
                                  i.leaf_group,
                                  i.place,
                                  is_node(i) ? std::to_string(i.links) : "",
                                  rate(i.before),
                                  rate(i.after),
                                  i.to_do}));
    }
}

}  // namespace banyan::topo::cli
