// SPDX-License-Identifier: GPL-2.0-or-later
#include "job_placement.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "fabric_cache.hpp"
#include "job_view.hpp"
#include "notice.hpp"
#include "plan_builder.hpp"

namespace banyan::slurm {
namespace {

struct bitmap_deleter {
    void operator()(bitstr_t* b) const { bit_free(b); }
};
using bitmap = std::unique_ptr<bitstr_t, bitmap_deleter>;

/// Candidates that are idle now and on the fabric, as host indices in ascending order.
std::vector<std::uint32_t> free_hosts(const fabric_cache::view& fabric, const controller& ctld,
                                      const bitstr_t* candidates) {
    std::vector<std::uint32_t> hosts;
    for (std::size_t host = 0; host < fabric.node_of_host.size(); ++host) {
        const int node = fabric.node_of_host[host];
        if (node >= 0 && bit_test(const_cast<bitstr_t*>(candidates), node) &&
            bit_test(const_cast<bitstr_t*>(ctld.idle_nodes()), node))
            hosts.push_back(static_cast<std::uint32_t>(host));
    }
    return hosts;
}

std::vector<std::uint32_t> hosts_of(const fabric_cache::view& fabric, const controller& ctld,
                                    const std::vector<std::string>& names) {
    std::vector<std::uint32_t> hosts;
    for (const auto& name : names) {
        const int node = ctld.find_node(name.c_str());
        if (node < 0) continue;
        const auto host = fabric.host_of_node[static_cast<std::size_t>(node)];
        if (host != fabric_cache::no_host) hosts.push_back(host);
    }
    return hosts;
}

/// Host indices of the nodes set in `chosen`; empty when one of them is not on the fabric.
std::vector<std::uint32_t> hosts_of(const fabric_cache::view& fabric, const bitstr_t* chosen) {
    std::vector<std::uint32_t> hosts;
    for (std::size_t node = 0; node < fabric.host_of_node.size(); ++node) {
        if (!bit_test(const_cast<bitstr_t*>(chosen), static_cast<int>(node))) continue;
        if (fabric.host_of_node[node] == fabric_cache::no_host) return {};
        hosts.push_back(fabric.host_of_node[node]);
    }
    return hosts;
}

/// A requeued job: every slot whose node is free again keeps it, since that node holds its shards; the others
/// are replaced.
std::optional<topo::placement> place_again(const fabric_cache::view& fabric, const controller& ctld,
                                           const topo::request& request, const topo::plan& before,
                                           const std::vector<std::uint32_t>& free) {
    const auto is_free = [&](std::uint32_t host) {
        return std::binary_search(free.begin(), free.end(), host);
    };
    topo::placement last;
    last.nodes = hosts_of(fabric, ctld, before.nodes);
    last.spares = hosts_of(fabric, ctld, before.spares);
    last.buddies = before.buddies;
    if (last.nodes.size() != request.nodes || last.buddies.size() != request.nodes) return std::nullopt;
    std::vector<std::uint32_t> lost, others;
    for (const auto host : last.nodes)
        if (!is_free(host)) lost.push_back(host);
    if (lost.size() == last.nodes.size()) return std::nullopt;
    std::erase_if(last.spares, [&](auto host) { return !is_free(host); });
    for (const auto host : free)
        if (std::find(last.nodes.begin(), last.nodes.end(), host) == last.nodes.end()) others.push_back(host);
    auto swapped = topo::swap(fabric.fabric, last, lost, others);
    if (!swapped) return std::nullopt;
    // Spares that are gone or came into use are made up from what is free.
    std::erase_if(swapped->spares, [&](auto host) {
        return std::find(swapped->nodes.begin(), swapped->nodes.end(), host) != swapped->nodes.end();
    });
    for (const auto host : others) {
        if (swapped->spares.size() >= request.spares) break;
        const bool used =
            std::find(swapped->nodes.begin(), swapped->nodes.end(), host) != swapped->nodes.end() ||
            std::find(swapped->spares.begin(), swapped->spares.end(), host) != swapped->spares.end();
        if (!used) swapped->spares.push_back(host);
    }
    swapped->spares.resize(std::min<std::size_t>(swapped->spares.size(), request.spares));
    if (swapped->spares.size() < request.spares) return std::nullopt;
    return std::move(*swapped);
}

/// A requeued job waits for those of its nodes that still end its last run, since they hold its shards; but
/// not for long: a node that hangs in COMPLETING must not hold the job. True while it should wait.
bool wait_for_shards(const fabric_cache::view& fabric, const controller& ctld, const job_record_t& job) {
    constexpr std::time_t longest_s = 10;
    struct waiting {
        std::uint32_t job_id = 0, restart = 0;
        std::time_t since = 0;
    };
    static std::array<waiting, 256> known{};  // jobs by number; a clash only shortens a wait
    const auto before = stored_plan(job);
    if (!before || before->restart >= job.restart_cnt) return false;
    const auto hosts = hosts_of(fabric, ctld, before->nodes);
    if (std::none_of(hosts.begin(), hosts.end(),
                     [&](auto host) { return ctld.frees_up_soon(fabric.node_of_host[host]); }))
        return false;
    auto& entry = known[job.job_id % known.size()];
    if (entry.job_id != job.job_id || entry.restart != job.restart_cnt)
        entry = {job.job_id, job.restart_cnt, std::time(nullptr)};
    return std::time(nullptr) - entry.since < longest_s;
}

result<topo::placement> choose(const fabric_cache::view& fabric, const controller& ctld,
                               const job_record_t& job, const topo::request& request,
                               const std::vector<std::uint32_t>& free) {
    std::vector<std::uint32_t> prefer;
    if (const auto before = stored_plan(job); before && before->restart < job.restart_cnt) {
        if (auto again = place_again(fabric, ctld, request, *before, free)) return std::move(*again);
        prefer = hosts_of(fabric, ctld, before->nodes);
    }
    return topo::place(fabric.fabric, free, request, prefer);
}

/// Clears every candidate that `placement` did not choose. False when a required node (-w) would be lost.
bool narrow(bitstr_t* candidates, const job_record_t& job, const fabric_cache::view& fabric,
            const topo::placement& placement) {
    const bitmap chosen(bit_alloc(bit_size(candidates)));
    for (const auto host : placement.nodes) bit_set(chosen.get(), fabric.node_of_host[host]);
    for (const auto host : placement.spares) bit_set(chosen.get(), fabric.node_of_host[host]);
    if (job.details->req_node_bitmap && !bit_super_set(job.details->req_node_bitmap, chosen.get()))
        return false;
    bit_and(candidates, chosen.get());
    return true;
}

/// After the fact: what cons_tres allocated, arranged as well as these nodes allow.
result<topo::placement> arrange_allocated(const fabric_cache::view& fabric, const topo::request& request,
                                          const bitstr_t* chosen) {
    const auto hosts = hosts_of(fabric, chosen);
    if (hosts.size() != request.nodes + request.spares)
        return fail(errc::not_found, "not all of the job's nodes are in the fabric snapshot");
    return topo::place(fabric.fabric, hosts, request);
}

}  // namespace

int place_job(job_record_t& job, bitstr_t* node_bitmap, test_mode mode, const ask_cons_tres& ask) {
    const auto request = request_of(job);
    if (!request) {
        log_job_once(job.job_id, fmt::format("{}; placed as by plain cons_tres", request.error().text()));
        return ask(node_bitmap);
    }
    const auto* ctld = controller::get();
    if (!*request || !ctld || mode == test_mode::test_only) return ask(node_bitmap);
    const auto* fabric = fabric_cache::instance().get(*ctld);
    if (!fabric) return ask(node_bitmap);

    if (wait_for_shards(*fabric, *ctld, job)) return ESLURM_NODES_BUSY;

    // Placement sees the nodes that are free now. When the job can start now, this is where it goes; when it
    // cannot, cons_tres looks into the future with all candidates, and placement is asked again once they are
    // free.
    std::optional<topo::placement> placement;
    const auto free = free_hosts(*fabric, *ctld, node_bitmap);
    if (free.size() >= (*request)->nodes + (*request)->spares) {
        if (auto chosen = choose(*fabric, *ctld, job, **request, free))
            placement = std::move(*chosen);
        else
            log_job_once(job.job_id, fmt::format("{}; placed as by plain cons_tres", chosen.error().text()));
    }
    int rc = SLURM_ERROR;
    const bitmap all(bit_copy(node_bitmap));
    if (placement && narrow(node_bitmap, job, *fabric, *placement)) {
        const bitmap narrowed(bit_copy(node_bitmap));
        rc = ask(node_bitmap);
        const bool later = mode == test_mode::will_run && job.start_time > std::time(nullptr);
        if (rc != SLURM_SUCCESS || later || !bit_equal(node_bitmap, narrowed.get())) {
            rc = SLURM_ERROR;
            placement.reset();
            bit_copybits(node_bitmap, all.get());
        }
    } else {
        placement.reset();
    }
    if (rc != SLURM_SUCCESS) rc = ask(node_bitmap);

    if (rc == SLURM_SUCCESS && mode == test_mode::run_now) {
        if (!placement) {
            auto arranged = arrange_allocated(*fabric, **request, node_bitmap);
            if (!arranged) {
                log_job_once(job.job_id, arranged.error().text() + "; its ranks stay in Slurm's order");
                return rc;
            }
            placement = std::move(*arranged);
        }
        save_placement(job, *fabric, *ctld, **request, *placement);
    }
    return rc;
}

}  // namespace banyan::slurm
