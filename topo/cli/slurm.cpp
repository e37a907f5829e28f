// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/slurm.hpp"

#include <memory>

#include <fmt/format.h>

#include "common/file.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"
#include "topo/counted.hpp"

namespace banyan::topo::cli {
namespace {

struct slurm_options {
    fabric_input input;
    std::string plugin, blocks = "leaf-group", nodes, slurm_conf, output;
    std::vector<std::uint32_t> block_sizes;
    bool yaml = false;
};

result<slurm_export> wanted(const slurm_options& o) {
    slurm_export out;
    out.plugin = o.plugin == "tree" ? slurm_plugin::tree : slurm_plugin::block;
    out.blocks = o.blocks == "leaf-group" ? slurm_blocks::leaf_group : slurm_blocks::nvlink_domain;
    out.block_sizes = o.block_sizes;
    if (out.plugin == slurm_plugin::tree &&
        (!o.block_sizes.empty() || out.blocks == slurm_blocks::nvlink_domain))
        return fail(errc::invalid_input, "--block-size and --blocks belong to --plugin block",
                    "leave them out for a tree");
    if (!o.nodes.empty() && !o.slurm_conf.empty())
        return fail(errc::invalid_input, "--nodes and --slurm-conf both say which nodes Slurm has",
                    "give one of them");
    if (!o.nodes.empty()) {
        auto nodes = nodes_of_hostlist(o.nodes);
        if (!nodes) return fail(nodes.error().code, "--nodes: " + nodes.error().what, nodes.error().hint);
        out.nodes = std::move(*nodes);
    }
    if (!o.slurm_conf.empty()) {
        BANYAN_TRY(const auto text, read_file(o.slurm_conf, max_slurm_conf_bytes));
        BANYAN_TRY(out.nodes, nodes_of_slurm_conf(text, o.slurm_conf));
    }
    return out;
}

result<int> run(const slurm_options& o) {
    BANYAN_TRY(const auto how, wanted(o));
    BANYAN_TRY(const auto f, o.input.load());
    BANYAN_TRY(const auto topology, slurm_topology_of(f, how));
    const auto text =
        o.yaml ? topology_yaml(f, topology, how.plugin) : topology_conf(f, topology, how.plugin);
    BANYAN_CHECK(write_output(o.output, text));
    if (topology.left_out > 0)
        fmt::print(stderr, "banyan-topo: {} in no {}; the comments at the head of {} name them\n",
                   counted(topology.left_out, "host or node stands", "hosts or nodes stand"),
                   how.plugin == slurm_plugin::tree ? "switch" : "block",
                   o.output.empty() ? "the output" : o.output);
    return fine;
}

}  // namespace

void add_slurm(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<slurm_options>();
    auto* sub =
        app.add_subcommand("slurm", "Write topology.conf or topology.yaml for Slurm's own topology plugins");
    o->input.add_to(*sub);
    sub->add_option("--plugin", o->plugin,
                    "tree: topology/tree, which every Slurm has;\n"
                    "block: topology/block, from Slurm 23.11 on")
        ->required()
        ->check(CLI::IsMember({"tree", "block"}));
    sub->add_flag("--yaml", o->yaml,
                  "topology.yaml, which Slurm reads from 25.05 on\n"
                  "(default: topology.conf)");
    sub->add_option("--block-size", o->block_sizes,
                    "BlockSizes, such as 8,32: nodes of a base block, then\n"
                    "2, 4, 8, ... times that (default: the smallest block,\n"
                    "and what stands under one spine)")
        ->delimiter(',')
        ->allow_extra_args(false)  // a FABRIC may follow
        ->check(CLI::Range(1u, 1'000'000u));
    sub->add_option("--blocks", o->blocks,
                    "what is a block: a leaf-group (default), or an\n"
                    "nvlink-domain as the site file has them")
        ->check(CLI::IsMember({"leaf-group", "nvlink-domain"}));
    sub->add_option("--nodes", o->nodes, "write these of Slurm's nodes only, such as n[01-16]");
    sub->add_option("--slurm-conf", o->slurm_conf,
                    "write the nodes only that this slurm.conf declares;\n"
                    "its Include lines are not followed");
    sub->add_option("-o,--output", o->output, "file to replace (default: standard output)")
        ->check(named_file);
    sub->footer(
        "The rails of a leaf group become one switch, named as banyan-topo show names the\n"
        "group; spines stand above, and a core where there are several. Hosts that stand\n"
        "nowhere are named in comments and counted on standard error; the exit code is 0\n"
        "all the same, and 2 where nothing was written.");
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
