// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-topo gen: the options of topo/generate on the command line.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/file.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"
#include "topo/generate/generate.hpp"

namespace banyan::topo::cli {
namespace {

struct gen_options {
    generate::options o;
    std::string shape = "rail", output, truth, defects;
    std::vector<std::string> kinds;
    double defect_rate = 0;
    CLI::App* sub = nullptr;

    bool given(const char* option) const { return sub->get_option(option)->count() > 0; }
};

/// What a shape implies, where nothing else was asked for.
void apply_shape(gen_options& r) {
    auto& o = r.o;
    const auto imply = [&r](const char* option, auto& field, auto value) {
        if (!r.given(option)) field = value;
    };
    if (r.shape == "fat-tree") {
        imply("--rails", o.rails, 1u);
        imply("--nodes", o.hosts, 4 * o.group_size);
    } else if (r.shape == "nvl72") {
        imply("--rails", o.rails, 4u);
        imply("--group-size", o.group_size, 18u);
        imply("--rack-size", o.rack_size, 18u);
        imply("--nodes", o.hosts, 8 * o.group_size);
    } else if (r.shape == "dragonfly") {
        o.dragonfly = true;
        imply("--rails", o.rails, 1u);
        imply("--group-size", o.group_size, 16u);
        imply("--nodes", o.hosts, 4 * o.spine_group_size * o.group_size);
    } else if (r.shape == "rail-only") {
        o.rail_only = true;
        imply("--nodes", o.hosts, 4 * o.group_size);
    } else {
        imply("--nodes", o.hosts, 2 * o.group_size);
    }
    if (o.planes > 1) imply("--rate", o.rate, "1xXDR");
}

result<void> apply_rates(gen_options& r) {
    for (std::size_t k = 0; k < generate::defect_kinds; ++k)
        if (generate::why_impossible(r.o, static_cast<generate::defect_kind>(k)).empty())
            r.o.rates[k] = r.defect_rate;
    if (r.defects.empty()) return {};
    BANYAN_TRY(r.o.rates, generate::parse_rates(r.defects, r.o.rates));
    return {};
}

void tell_shortfall(const generate::truth& facts) {
    for (std::size_t k = 0; k < generate::defect_kinds; ++k) {
        const auto kind = static_cast<generate::defect_kind>(k);
        const auto planted = static_cast<std::uint32_t>(std::count_if(
            facts.defects.begin(), facts.defects.end(), [&](const auto& d) { return d.kind == kind; }));
        if (planted < facts.asked[k])
            fmt::print(stderr,
                       "banyan-topo: {} of {} {} planted: more would have overlapped with other defects\n",
                       planted, facts.asked[k], generate::name_of(kind));
    }
}

result<int> run(gen_options& r) {
    if (same_output(r.output, r.truth))
        return fail(errc::invalid_input, fmt::format("--output and --truth both name {}", r.truth),
                    "give each a file of its own; nothing was written");
    apply_shape(r);
    for (const auto& kind : r.kinds) BANYAN_CHECK(generate::add_kind(r.o, kind));
    BANYAN_CHECK(apply_rates(r));
    BANYAN_TRY(const auto made, generate::generate(r.o));
    tell_shortfall(made.facts);
    if (!r.truth.empty()) BANYAN_CHECK(write_output(r.truth, generate::to_json(made.facts, r.o)));
    BANYAN_CHECK(write_output(r.output, made.text));
    return fine;
}

void add_size_options(CLI::App& sub, gen_options& r) {
    auto& o = r.o;
    sub.add_option("--shape", r.shape,
                   "rail: groups of hosts with one leaf a rail; fat-tree: one HCA a host; nvl72: racks of 18 "
                   "hosts x 4 "
                   "HCAs; dragonfly: spine groups joined by links between their spines; rail-only: each rail "
                   "has spines of its own (default rail)")
        ->check(CLI::IsMember({"rail", "fat-tree", "nvl72", "dragonfly", "rail-only"}));
    sub.add_option("--nodes", o.hosts,
                   "hosts (default two leaf groups; fat-tree and rail-only: four, nvl72: eight, dragonfly: "
                   "four spine groups)")
        ->check(CLI::Range(1, 60000));
    sub.add_option("--group-size", o.group_size,
                   "hosts of a leaf group (default 32; nvl72: 18, dragonfly: 16)")
        ->check(CLI::Range(1, 254));
    sub.add_option("--rails", o.rails,
                   "HCAs of a host, and leaves of a group (default 8; fat-tree and dragonfly: 1, nvl72: 4)")
        ->check(CLI::Range(1, 16));
    sub.add_option("--levels", o.levels, "2: leaves and spines; 3: groups of those under cores (default 2)")
        ->check(CLI::Range(2, 3));
    sub.add_option("--spine-group-size", o.spine_group_size, "leaf groups under the same spines (default 4)")
        ->check(CLI::Range(1, 64));
    sub.add_option("--radix", o.radix,
                   "ports of a switch; it gets more where the shape needs them (default 64)")
        ->check(CLI::Range(4, 256));
    sub.add_option("--oversubscription", o.oversubscription,
                   "host links of a leaf over its uplinks (default 1)")
        ->check(CLI::Range(1.0, 16.0));
    sub.add_option("--spines", o.spines,
                   "switches of a spine group (default: as the oversubscription implies)")
        ->check(CLI::Range(1, 1024));
    sub.add_option("--links", o.links, "parallel links from each leaf to each spine (default: the same)")
        ->check(CLI::Range(1, 32));
    sub.add_option("--cores", o.cores,
                   "core switches, a multiple of a spine group's spines (default: the same)")
        ->check(CLI::Range(1, 60000));
    sub.add_option("--global-links", o.global_links,
                   "dragonfly: links of each pair of spine groups (default: as many as spines)")
        ->check(CLI::Range(1, 256));
    sub.add_option("--planes", o.planes,
                   "planes: switches of one box, ports of an HCA (default 1; XDR has 4)")
        ->check(CLI::Range(1, 8));
    sub.add_option("--rate", o.rate, "width and speed of every link (default 4xHDR; with planes 1xXDR)");
}

void add_other_options(CLI::App& sub, gen_options& r) {
    auto& o = r.o;
    sub.add_flag("--sharp", o.sharp, "an aggregation node on each switch");
    sub.add_option("--ufm-hosts", o.ufm_hosts, "hosts of a fabric manager (default 0)")
        ->check(CLI::Range(0, 64));
    sub.add_option("--storage-servers", o.storage_servers, "on leaves of their own (default 0)")
        ->check(CLI::Range(0, 512));
    sub.add_flag("--storage-rail", o.storage_rail, "one more HCA a host, on leaves of their own");
    sub.add_option("--host-prefix", o.host_prefix, "host names begin with this (default n)");
    sub.add_option("--host-digits", o.host_digits,
                   "and end in a number of so many digits (default 2, or what the last host needs)")
        ->check(CLI::Range(1, 8));
    sub.add_option("--rack-size", o.rack_size, "hosts of a rack; names are then rack and host (nvl72: 18)")
        ->check(CLI::Range(1, 1000));
    sub.add_option(
           "--racks-off", o.racks_off,
           "share of the racks whose hosts are switched off (default 0; leaf groups without --rack-size)")
        ->check(CLI::Range(0.0, 0.5));
    sub.add_option("--gateways", o.gateways, "hosts on the spines (default 0)")->check(CLI::Range(0, 512));
    sub.add_option("--core-hosts", o.core_hosts, "hosts on the cores (default 0)")->check(CLI::Range(0, 512));
    sub.add_option("--routers", o.routers, "routers on the spines (default 0)")->check(CLI::Range(0, 512));
    sub.add_flag("--directors", o.directors, "switches are the line and spine cards of directors");
    sub.add_option("--mixed-names", o.mixed_names,
                   "share of switches that were never named, and of hosts that name their HCAs otherwise "
                   "(default 0)")
        ->check(CLI::Range(0.0, 1.0));
    sub.add_option("--kind", r.kinds,
                   fmt::format("kinds of real fabrics, with what fails in them as a whole: {}",
                               fmt::join(generate::kinds(), ", ")))
        ->delimiter(',');
    sub.add_option("--sm-host", o.sm_host, "host of the subnet manager (default sm01)");
    sub.add_flag("--shuffle", o.shuffle, "GUIDs and records in random order");
    sub.add_option("--defects", r.defects,
                   "KIND=RATE,...: defects as check names them, and the share that has them");
    sub.add_option("--defect-rate", r.defect_rate,
                   "the same for all kinds that the shape can have (default 0)")
        ->check(CLI::Range(0.0, 0.5));
    sub.add_option("--seed", o.seed, "of all that is random (default 1)");
    sub.add_option("--truth", r.truth,
                   "file to replace with the planted defects, and the true groups, rails and roles")
        ->check(named_file);
    sub.add_option("-o,--output", r.output, "file to replace (default: standard output)")->check(named_file);
}

}  // namespace

void add_gen(CLI::App& app, action& chosen) {
    const auto r = std::make_shared<gen_options>();
    r->sub =
        app.add_subcommand("gen", "Write a synthetic fabric, which ibsim can load, with defects if asked");
    add_size_options(*r->sub, *r);
    add_other_options(*r->sub, *r);
    r->sub->callback([r, &chosen] { chosen = [r]() { return run(*r); }; });
}

}  // namespace banyan::topo::cli
