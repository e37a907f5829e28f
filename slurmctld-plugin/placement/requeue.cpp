// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/requeue.hpp"

#include <algorithm>

#include "slurmctld-plugin/placement/since.hpp"

namespace banyan::slurm {
namespace {

/// A set of hosts.
class host_set {
  public:
    host_set(const train_job& job, const std::vector<std::uint32_t>& hosts) : in_(job.fabric.map.hosts()) {
        for (const auto host : hosts) add(host);
    }
    void add(std::uint32_t host) { in_[host] = true; }
    bool contains(std::uint32_t host) const { return in_[host]; }

  private:
    std::vector<bool> in_;
};

}  // namespace

bool ended_just_now(const job_record_t& job) {
    constexpr std::time_t credential_gap_s = 2;
    return job.restart_cnt > 0 && std::time(nullptr) < job.time_last_active + credential_gap_s;
}

bool wait_for_nodes(const job_record_t& job, const ctld_tables& ctld, const std::vector<int>& nodes) {
    constexpr std::time_t longest_s = 10;
    static since_when waiting;
    const auto frees_up = [&](int node) { return node >= 0 && ctld.frees_up_soon(node); };
    return std::ranges::any_of(nodes, frees_up) && waiting.seconds(job) < longest_s;
}

bool wait_for_shards(const train_job& job) {
    const auto* before = job.last();
    if (!before) return false;
    std::vector<int> nodes;
    for (const auto host : before->nodes) nodes.push_back(job.fabric.map.node_of(host));
    return wait_for_nodes(job.record, job.ctld, nodes);
}

std::span<const std::uint32_t> hosts_with_shards(const train_job& job) {
    const auto* before = job.last();
    return before ? std::span(before->nodes) : std::span<const std::uint32_t>();
}

std::optional<topo::placement> keep_slots(const train_job& job, const std::vector<std::uint32_t>& free) {
    const auto* before = job.last();
    if (!before) return std::nullopt;
    const auto& request = job.request;
    const host_set all_free(job, free);
    auto last = *before;
    if (last.nodes.size() != request.nodes || last.buddies.size() != request.nodes) return std::nullopt;
    const auto is_free = [&](std::uint32_t host) { return all_free.contains(host); };
    if (std::none_of(last.nodes.begin(), last.nodes.end(), is_free)) return std::nullopt;
    std::erase_if(last.spares, [&](auto host) { return !is_free(host); });
    auto swapped = topo::swap_onto(job.fabric.fabric, last, free);
    if (!swapped) return std::nullopt;
    // Spares that are gone or came into use are made up from what is free.
    auto& spares = swapped->spares;
    host_set used(job, swapped->nodes);
    std::erase_if(spares, [&](auto host) { return used.contains(host); });
    for (const auto host : spares) used.add(host);
    const auto reach = topo::reach_of_hosts(job.fabric.fabric);
    for (const auto host : free) {
        if (spares.size() >= request.spares) break;
        if (!used.contains(host) && reach[host] == reach[swapped->nodes[0]]) spares.push_back(host);
    }
    spares.resize(std::min<std::size_t>(spares.size(), request.spares));
    if (spares.size() < request.spares) return std::nullopt;
    return std::move(*swapped);
}

}  // namespace banyan::slurm
