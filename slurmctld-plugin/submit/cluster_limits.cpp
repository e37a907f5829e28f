// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/submit/cluster_limits.hpp"

#include <fmt/format.h>

#include "slurmctld-plugin/ctld_tables.hpp"
#include "train/job_size.hpp"

namespace banyan::slurm {

result<void> fits_in_the_cluster(const topo::request& asked) {
    const auto* ctld = ctld_tables::get();
    const auto nodes = train::all_nodes(asked);
    if (!ctld || nodes <= static_cast<std::uint32_t>(ctld->nodes())) return {};
    return fail(errc::invalid_input,
                fmt::format("--train-parallel={} is {} ranks on {} nodes{}, but the cluster has {} nodes",
                            asked.dims.text(), asked.dims.ranks(), nodes,
                            asked.spares > 0 ? " with the spares" : "", ctld->nodes()),
                "ask for more ranks on a node, or for fewer in all");
}

result<void> fits_on_a_node(const topo::request& asked) {
    const auto* ctld = ctld_tables::get();
    const auto most = ctld ? ctld->most_cpus() : 0;
    if (most == 0 || asked.ranks_per_node <= most) return {};
    const auto nodes = (asked.dims.ranks() + most - 1) / most;
    return fail(
        errc::invalid_input,
        fmt::format(
            "--train-parallel={} is {} ranks, {} on each of {} nodes, but no node of this cluster has "
            "more than {} CPUs",
            asked.dims.text(), asked.dims.ranks(), asked.ranks_per_node, asked.nodes, most),
        fmt::format("ask for {} nodes or more beside the spares, or for fewer ranks", nodes));
}

result<void> fits_in_memory(const job_request& asked) {
    const auto* ctld = ctld_tables::get();
    if (!asked.options.checkpoint || !ctld || !memory_is_counted()) return {};
    const auto most = ctld->most_memory_mib();
    const auto bytes = asked.options.checkpoint->bytes;  // bounded by the parser
    if (most <= 1 || bytes * asked.placement.ranks_per_node <= most << 20) return {};
    return fail(
        errc::invalid_input,
        fmt::format(
            "--train-ckpt: size={} is {} MiB for the {} ranks of a node, but no node of this cluster has "
            "more than {} MiB",
            bytes, bytes * asked.placement.ranks_per_node >> 20, asked.placement.ranks_per_node, most),
        "ask for more nodes, or correct size");
}

}  // namespace banyan::slurm
