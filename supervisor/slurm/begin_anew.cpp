// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/slurm/begin_anew.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::supervisor {
namespace {

using names = std::set<std::string>;

template <class Message>
using owned = std::unique_ptr<Message, void (*)(Message*)>;

std::unexpected<error> unread(const char* what) {
    return fail(errc::unavailable,
                fmt::format("cannot read the {}: {}", what, slurm_strerror(libslurm::last_error())));
}

names names_in(const char* list) {
    const auto all = expand_hostlist(list ? list : "");
    return all ? names(all->begin(), all->end()) : names();
}

std::string_view text_of(const char* text) { return text ? text : ""; }

/// -c is a TRES of each task, too, from 23.11 on.
bool says_more(const slurm_job_info_t& job) {
    return job.deadline != 0 || job.contiguous == 1 || !text_of(job.req_nodes).empty() ||
           !text_of(job.tres_per_job).empty() || text_of(job.tres_per_task).contains("gres");
}

result<bool> partition_takes(const slurm_job_info_t& job, const names& own, std::uint32_t nodes) {
    partition_info_msg_t* answer = nullptr;
    if (slurm_load_partitions(0, &answer, SHOW_ALL) != SLURM_SUCCESS) return unread("partitions");
    const owned<partition_info_msg_t> owner(answer, slurm_free_partition_info_msg);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& its = answer->partition_array[i];
        if (text_of(its.name) != text_of(job.partition)) continue;
        const auto members = names_in(its.nodes);
        return its.state_up == PARTITION_UP && its.max_nodes >= nodes && std::ranges::includes(members, own);
    }
    return false;
}

result<bool> nodes_stay(const names& own) {
    node_info_msg_t* answer = nullptr;
    if (slurm_load_node(0, &answer, SHOW_ALL) != SLURM_SUCCESS) return unread("nodes");
    const owned<node_info_msg_t> owner(answer, slurm_free_node_info_msg);
    constexpr std::uint32_t leaves = NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND;
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& node = answer->node_array[i];
        if (node.name && (node.node_state & leaves) && own.contains(node.name)) return false;
    }
    return true;
}

result<bool> nobody_reserved(const slurm_job_info_t& job, const names& own) {
    reserve_info_msg_t* answer = nullptr;
    if (slurm_load_reservations(0, &answer) != SLURM_SUCCESS) return unread("reservations");
    const owned<reserve_info_msg_t> owner(answer, slurm_free_reservation_info_msg);
    const auto now = std::time(nullptr);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& its = answer->reservation_array[i];
        const bool comes =
            job.time_limit == INFINITE || its.start_time < now + std::time_t{job.time_limit} * 60;
        if (!comes || its.end_time <= now) continue;
        if (!text_of(job.resv_name).empty() && text_of(job.resv_name) == text_of(its.name)) continue;
        if (std::ranges::any_of(names_in(its.node_list),
                                [&](const auto& node) { return own.contains(node); }))
            return false;
    }
    return true;
}

}  // namespace

result<bool> could_begin_anew(const slurm_job_info_t& job, std::uint32_t nodes) {
    if (says_more(job)) return false;
    const auto own = names_in(job.nodes);
    BANYAN_TRY(const bool taken, partition_takes(job, own, nodes));
    if (!taken) return false;
    BANYAN_TRY(const bool stay, nodes_stay(own));
    if (!stay) return false;
    return nobody_reserved(job, own);
}

}  // namespace banyan::supervisor
