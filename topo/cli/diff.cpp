// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/diff.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/diff_order.hpp"
#include "topo/counted.hpp"

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

/// A line of either that could not be read: no list has what changed there.
struct unread {
    std::string file, where, what;
};

void add_unread(std::vector<unread>& out, const std::string& file, const fabric& f) {
    for (const auto& d : f.defects)
        if (d.kind == "unreadable") out.push_back({file, d.objects.front(), d.evidence});
}

nlohmann::json unread_json(const std::vector<unread>& all) {
    auto out = nlohmann::json::array();
    for (const auto& u : all) out.push_back({{"file", u.file}, {"where", u.where}, {"what", u.what}});
    return out;
}

void print_unread(const std::vector<unread>& all, std::FILE* to) {
    for (const auto& u : all)
        fmt::print(to, "{} {} could not be read: {}\n", printable(u.file), u.where, u.what);
    if (!all.empty())
        fmt::print(to, "what these {} tell is not compared; discover again to be sure\n",
                   counted(all.size(), "line"));
}

}  // namespace

void add_diff(CLI::App& app, action& chosen) {
    struct options {
        std::string before, after;
        bool json = false, csv = false;
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand(
        "diff",
        "What changed, as a work order for the cables; exit code 1 when anything did or could not be read");
    sub->add_option("BEFORE", o->before, "a fabric: a dump as show takes it, or a snapshot")->required();
    sub->add_option("AFTER", o->after, "the same, later")->required();
    sub->add_flag("--json", o->json, "print JSON");
    sub->add_flag("--csv", o->csv, "print the work order as CSV");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            if (o->json && o->csv) return fail(errc::invalid_input, "--json and --csv exclude each other");
            BANYAN_TRY(const auto before, load_fabric(o->before));
            BANYAN_TRY(const auto after, load_fabric(o->after));
            const auto d = diff(before, after);
            std::vector<unread> unreadable;
            add_unread(unreadable, o->before, before);
            add_unread(unreadable, o->after, after);
            if (o->json) {
                const nlohmann::json out{{"lost_links", links_json(d.lost_links)},
                                         {"new_links", links_json(d.new_links)},
                                         {"moved_links", moved_json(d.moved_links)},
                                         {"changed_rates", rates_json(d.changed_rates)},
                                         {"lost_nodes", nodes_json(d.lost_nodes)},
                                         {"new_nodes", nodes_json(d.new_nodes)},
                                         {"unreadable", unread_json(unreadable)}};
                fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
            } else if (o->csv) {
                print_order_csv(work_order(before, after, d));
                print_unread(unreadable, stderr);
            } else {
                print_order(work_order(before, after, d));
                if (d.empty())
                    fmt::print("no difference{}\n", unreadable.empty() ? "" : " in what could be read");
                print_unread(unreadable, stdout);
            }
            return d.empty() && unreadable.empty() ? fine : found_something;
        };
    });
}

}  // namespace banyan::topo::cli
