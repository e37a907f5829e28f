// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {
namespace {

/// The HCA that each rank sends through: that of its GPU's rail; none where its host has none there.
std::vector<std::uint32_t> hca_of_rank(const fabric& f, const job_slots& job, const placement& p) {
    const auto ranks = job.ranks_by_slot();
    const auto per_node = job.cut().size();
    std::vector<std::uint32_t> out(ranks.size(), none);
    for (std::uint32_t slot = 0; slot < job.count(); ++slot) {
        if (p.nodes[slot] >= f.hosts.size()) continue;
        const auto& hcas = f.hosts[p.nodes[slot]].hcas;
        for (std::size_t i = 0; i < per_node && !hcas.empty(); ++i)
            out[ranks[std::size_t{slot} * per_node + i]] = hcas[i % hcas.size()];
    }
    return out;
}

}  // namespace

link_load busiest_link(const fabric& f, const request& r, const placement& p, const routing& tables) {
    const job_slots job(r);
    const auto hca = hca_of_rank(f, job, p);
    const auto bytes = traffic_of(r.dims, r.model.value_or(model_size{}));
    const router routes(f, tables);
    link_load out;
    // By link and direction: the end that sends is the one nearer to the source.
    std::unordered_map<std::uint64_t, double> load;
    for (const auto d : all_dimensions)
        each_send(r, d, [&](std::uint32_t from, std::uint32_t to) {
            if (job.slot_of(from) == job.slot_of(to)) return;
            const auto path = hca[from] == none || hca[to] == none ? std::vector<std::uint32_t>{}
                                                                   : routes.path(hca[from], hca[to]);
            if (path.empty()) {
                ++out.without_route;
                return;
            }
            auto at = port_ref{node_kind::hca, hca[from], 0};
            for (const auto index : path) {
                const auto& l = f.links[index];
                const bool forward = l.a.kind == at.kind && l.a.index == at.index;
                const auto &near = forward ? l.a : l.b, &far = forward ? l.b : l.a;
                at = far;
                if (near.kind != node_kind::switch_node || far.kind != node_kind::switch_node) continue;
                auto& sum = load[std::uint64_t{index} << 1 | forward];
                sum += bytes[d];
                if (sum <= out.bytes) continue;
                out.bytes = sum;
                out.from = near;
            }
        });
    return out;
}

}  // namespace banyan::topo
