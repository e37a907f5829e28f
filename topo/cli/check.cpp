// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <banyan/topo/diff.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topo/cli/cli.hpp"
#include "topo/cli/defect_places.hpp"
#include "topo/counted.hpp"

namespace banyan::topo::cli {
namespace {

struct check_options {
    fabric_input input;
    std::string golden;
    bool json = false, all = false;
};

/// What to do about each kind of defect.
std::string advice(const std::string& kind) {
    static const std::map<std::string, std::string> known{
        {"bad-link", "clean or exchange the cable or its modules; then clear the counters (perfquery -R)"},
        {"asymmetric-spine", "look at the cables and ports of that switch"},
        {"doubled-port", "discover again: one of the two records is old, or the fabric changed meanwhile"},
        {"duplicate-guid", "two cards answer with one GUID, or the dump was joined from two: discover again"},
        {"duplicate-lid",
         "is a second subnet manager running? restart the subnet manager so that it reassigns LIDs"},
        {"duplicate-name",
         "set the node description of each (rdma-ndd on hosts, the switch's own system name)"},
        {"factory-name", "set the node description: rdma-ndd on hosts, the switch's own system name"},
        {"flapping-link", "reseat the cable; hosts that were started that often are no fault"},
        {"foreign-leaf", "plug the cable into the leaf of its own group, or correct the plan of cables"},
        {"loop", "take the cable out"},
        {"lost-link",
         "look at the cable and both ports; accept it with banyan-topo snapshot if it was meant"},
        {"lost-node", "is it powered? accept it with banyan-topo snapshot if it was meant"},
        {"missing-leaf", "is the switch powered and cabled? every host of the group lacks that rail"},
        {"missing-plane",
         "look at that port of the box, or at the chip; ibstat on the host tells its planes"},
        {"missing-rail", "look at the HCA and its cable: ibstat on the host"},
        {"missing-switch", "is the switch powered? its cables are dark at their other ends"},
        {"missing-uplink", "look at the cables and ports upwards of that switch"},
        {"moved-cable", "put it back, or accept it with banyan-topo snapshot"},
        {"narrow-link", "reseat or replace the cable: lanes are down"},
        {"no-lid", "is the subnet manager running, and does its log name these ports?"},
        {"no-master", "start the subnet manager: no port comes up without one"},
        {"no-record",
         "discover again: the node answered its neighbour's probe and then no more, or the end of the text "
         "is missing"},
        {"no-standby", "start a second subnet manager with a lower priority"},
        {"odd-firmware", "bring it to the version of its like, or all to a newer one"},
        {"off", "no fault: the hosts of these leaves are not there"},
        {"one-way-link", "discover again: the fabric changed while it was read, or a port is failing"},
        {"same-leaf", "plug one of the two into the leaf that the other hosts have for it"},
        {"slow-link", "reseat or replace the cable; compare the port speeds that either side allows"},
        {"slower-link", "reseat or replace the cable; it was faster in the accepted state"},
        {"swapped-cables", "exchange the two cables at the leaves"},
        {"two-masters", "two subnets were joined, or both run on one port: stop one"},
        {"unknown-shape", "hosts of one leaf group stay together; what lies above them is not weighed"},
        {"unknown-host", "correct the site file, or find out why the host has no fabric"},
        {"unreadable", "the rest of the dump was read; discover again to be sure"},
        {"wrong-rail", "plug the cable into the leaf of its rail"}};
    const auto at = known.find(kind);
    return at == known.end() ? std::string() : at->second;
}

std::string port_id(const link_end& e) { return fmt::format("0x{:016x} port {}", e.id, e.port); }

/// What the accepted state has and the fabric lacks.
std::vector<defect> losses(const fabric_diff& d) {
    std::vector<defect> out;
    std::set<guid> gone;
    std::set<std::pair<guid, std::uint16_t>> moved;
    for (const auto& n : d.lost_nodes) {
        gone.insert(n.id);
        const auto id = fmt::format("0x{:016x}", n.id);
        out.push_back({"lost-node", {n.name}, id + " is in the accepted state", 1.0, {id}});
    }
    for (const auto& l : d.moved_links) {
        moved.insert({l.kept.id, l.kept.port});
        out.push_back(
            {"moved-cable",
             {l.kept.text()},
             fmt::format("leads to {}, in the accepted state to {}", l.after.text(), l.before.text()),
             1.0,
             {port_id(l.kept)}});
    }
    for (const auto& l : d.lost_links) {
        // A lost node's links went with it.
        if (gone.contains(l.a.id) || gone.contains(l.b.id)) continue;
        if (moved.contains({l.a.id, l.a.port}) || moved.contains({l.b.id, l.b.port})) continue;
        out.push_back({"lost-link",
                       {l.a.text(), l.b.text()},
                       "it is in the accepted state",
                       1.0,
                       {port_id(l.a), port_id(l.b)}});
    }
    for (const auto& l : d.changed_rates)
        if (l.after.width * l.after.lane_gbps10 < l.before.width * l.before.lane_gbps10)
            out.push_back(
                {"slower-link",
                 {l.a.text(), l.b.text()},
                 fmt::format("{}x{} Gbit/s, in the accepted state {}x{}", l.after.width,
                             l.after.lane_gbps10 / 10.0, l.before.width, l.before.lane_gbps10 / 10.0),
                 1.0,
                 {port_id(l.a), port_id(l.b)}});
    return out;
}

/// A switch that only its neighbours' dark ports tell of is one that the accepted state knows.
void drop_known_losses(const fabric_diff& d, std::vector<defect>& defects) {
    std::set<std::string> dark;
    for (const auto& l : d.lost_links)
        for (const auto& e : {l.a, l.b}) dark.insert(port_id(e));
    std::erase_if(defects, [&](const defect& found) {
        return found.kind == "missing-switch" &&
               std::ranges::all_of(found.where, [&](const auto& port) { return dark.contains(port); });
    });
}

/// What is wrong, less what was wrong in the accepted state, and what that had more. Returns how many were
/// accepted.
std::size_t compare(const fabric& accepted, fabric& now) {
    // By GUID and port where it has them: names may be the same for all switches, and a second uplink that a
    // switch loses is a new defect of it.
    std::set<std::pair<std::string, std::vector<std::string>>> known, known_by_name;
    for (const auto& d : accepted.defects)
        (d.where.empty() ? known_by_name : known).emplace(d.kind, d.where.empty() ? d.objects : d.where);
    const auto left = std::erase_if(now.defects, [&](const defect& d) {
        return known.contains({d.kind, d.where}) || known_by_name.contains({d.kind, d.objects});
    });
    const auto changed = diff(accepted, now);
    drop_known_losses(changed, now.defects);
    for (auto& d : losses(changed)) now.defects.push_back(std::move(d));
    return left;
}

void print_missing(const std::vector<std::string>& cables, bool all) {
    constexpr std::size_t listed = 4;
    const auto count = all ? cables.size() : std::min(cables.size(), listed);
    for (std::size_t i = 0; i < count; ++i) fmt::print("      missing: {}\n", cables[i]);
    if (count < cables.size())
        fmt::print("      and {}: --all lists them\n", counted(cables.size() - count, "more missing cable"));
}

/// Those that are named above, where they stand.
void print_nameless(const fabric& f, const defect_places& places) {
    std::set<std::uint32_t> switches;
    for (const auto& d : f.defects)
        for (const auto sw : places.nameless(d)) switches.insert(sw);
    if (!switches.empty()) fmt::print("\nswitches without a name of their own, and where they stand\n");
    for (const auto sw : switches)
        fmt::print("  {} (0x{:016x}): {}\n", places.name(sw), f.switches[sw].id, places.place(sw));
}

void print_text(const fabric& f, std::size_t accepted, bool all) {
    const defect_places places(f);
    std::map<std::string, std::vector<const defect*>> by_kind;
    for (const auto& d : f.defects) by_kind[d.kind].push_back(&d);
    for (const auto& [kind, defects] : by_kind) {
        fmt::print("{} ({}){}{}\n", kind, defects.size(), advice(kind).empty() ? "" : ": ", advice(kind));
        for (const auto* d : defects) {
            std::string objects;
            for (const auto& name : d->objects) objects += (objects.empty() ? "" : " - ") + name;
            fmt::print("  {}{}\n      {}\n", objects,
                       d->confidence < 0.995 ? fmt::format(" ({:.0f} % sure)", 100 * d->confidence) : "",
                       d->evidence);
            print_missing(places.missing_cables(*d), all);
        }
    }
    print_nameless(f, places);
    fmt::print("{}{}{} on {} and {}\n", f.defects.empty() ? "" : "\n", counted(faults(f), "defect"),
               accepted > 0 ? " beside " + counted(accepted, "accepted one") : "",
               counted(f.hosts.size(), "host"), counted(f.switches.size(), "switch", "switches"));
}

void print_json(const fabric& f) {
    auto list = nlohmann::json::array();
    const defect_places places(f);
    for (const auto& d : f.defects) {
        auto switches = nlohmann::json::array();
        for (const auto sw : places.nameless(d))
            switches.push_back({{"guid", fmt::format("0x{:016x}", f.switches[sw].id)},
                                {"name", places.name(sw)},
                                {"place", places.place(sw)}});
        list.push_back({{"kind", d.kind},
                        {"objects", d.objects},
                        {"evidence", d.evidence},
                        {"confidence", d.confidence},
                        {"where", d.where},
                        {"missing", places.missing_cables(d)},
                        {"nameless_switches", std::move(switches)},
                        {"advice", advice(d.kind)}});
    }
    fmt::print("{}\n", list.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
}

result<int> run(const check_options& o) {
    std::optional<fabric> golden;
    if (!o.golden.empty()) {
        BANYAN_TRY(golden, load_fabric(o.golden));
    }
    BANYAN_TRY(auto f, o.input.load(golden ? &*golden : nullptr));
    const auto accepted = golden ? compare(*golden, f) : 0;
    if (o.json)
        print_json(f);
    else
        print_text(f, accepted, o.all);
    if (const auto untold = words_of(f.untold); !untold.empty())
        fmt::print(o.json ? stderr : stdout, "not looked at, since the source does not tell: {}\n",
                   fmt::join(untold, ", "));
    // What was looked for among hosts was not found because there are none.
    if (!golden) BANYAN_CHECK(o.input.need_hosts(f));
    return faults(f) == 0 ? fine : found_something;
}

}  // namespace

void add_check(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<check_options>();
    auto* sub =
        app.add_subcommand("check", "List what is wrong with the fabric; exit code 1 when anything is");
    o->input.add_to(*sub);
    sub->add_option("--golden", o->golden,
                    "an accepted state: what differs from it is a defect, what it has is none");
    sub->add_flag("--all", o->all, "list every missing cable, however many a defect has");
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
