// SPDX-License-Identifier: GPL-2.0-or-later
//
// The hosts of the fabric and the nodes of slurm.conf: the same machines, numbered twice. Hosts count from 0
// as in the snapshot, nodes as in slurmctld's table. Knows no Slurm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace banyan::slurm {

class host_map {
  public:
    static constexpr std::uint32_t no_host = UINT32_MAX;
    static constexpr int no_node = -1;

    host_map() = default;
    /// `node_of_host`: for each host its node, or no_node where slurm.conf lacks it. `nodes`: size of the
    /// table.
    host_map(std::vector<int> node_of_host, std::size_t nodes)
        : node_of_(std::move(node_of_host)), host_of_(nodes, no_host) {
        for (std::uint32_t host = 0; host < node_of_.size(); ++host)
            if (node_of_[host] != no_node) host_of_[static_cast<std::size_t>(node_of_[host])] = host;
    }

    std::size_t hosts() const { return node_of_.size(); }
    std::size_t nodes() const { return host_of_.size(); }

    /// `host` is one of the fabric's.
    int node_of(std::uint32_t host) const { return node_of_[host]; }
    /// no_host for a node that the fabric lacks, and for no_node.
    std::uint32_t host_of(int node) const {
        return node == no_node ? no_host : host_of_[static_cast<std::size_t>(node)];
    }
    /// One for each of `nodes`, in their order.
    std::vector<std::uint32_t> hosts_of(const std::vector<int>& nodes) const {
        std::vector<std::uint32_t> out;
        out.reserve(nodes.size());
        for (const int node : nodes) out.push_back(host_of(node));
        return out;
    }
    /// The same without those that the fabric lacks.
    std::vector<std::uint32_t> known_hosts_of(const std::vector<int>& nodes) const {
        auto out = hosts_of(nodes);
        std::erase(out, no_host);
        return out;
    }
    /// Hosts, ascending, for whose node `wanted` holds.
    template <class Wanted>
    std::vector<std::uint32_t> hosts_where(Wanted wanted) const {
        std::vector<std::uint32_t> out;
        for (std::uint32_t host = 0; host < node_of_.size(); ++host)
            if (node_of_[host] != no_node && wanted(node_of_[host])) out.push_back(host);
        return out;
    }

  private:
    std::vector<int> node_of_;            ///< by host
    std::vector<std::uint32_t> host_of_;  ///< by node
};

}  // namespace banyan::slurm
