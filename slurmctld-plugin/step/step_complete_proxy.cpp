// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_complete_proxy.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "slurmctld-plugin/containers.hpp"

namespace banyan::slurm {
namespace {

constexpr std::uint32_t code_of_lost = 9;  // what Slurm writes down for such a node

template <class T>
T* zeroed() {
    return static_cast<T*>(xmalloc(sizeof(T)));
}

void send_word(const node_record_t& above, const slurm_step_id_t& step, int first, int last) {
    auto* word = zeroed<step_complete_msg_t>();
    word->step_id = step;
    word->range_first = static_cast<std::uint32_t>(first);
    word->range_last = static_cast<std::uint32_t>(last);
    word->step_rc = code_of_lost;
    auto* request = zeroed<agent_arg_t>();  // frees itself and the word
    request->node_count = 1;
    request->protocol_version = above.protocol_version;
    request->hostlist = hostlist_create(above.name);
    request->msg_type = REQUEST_STEP_COMPLETE;
    request->msg_args = word;
    set_agent_arg_r_uid(request, SLURM_AUTH_UID_ANY);
    agent_queue_request(request);
}

bool is_normal(const step_record_t& step) {
    return step.step_id.step_id < SLURM_MAX_NORMAL_STEP_ID && step.step_layout && step.step_layout->node_list;
}

std::vector<std::string> nodes_of(const step_record_t& step) {
    auto nodes = expand_hostlist(step.step_layout->node_list);
    return nodes ? std::move(*nodes) : std::vector<std::string>();
}

const node_record_t* find(const std::string& name) {
    return find_node_record(const_cast<char*>(name.c_str()));
}

/// For the one at `rank` of the step's nodes.
void complete_for(const slurm_step_id_t& step, const std::vector<std::string>& nodes, int rank) {
    int parent = -1, below = 0, depth = 0, deepest = 0;
    reverse_tree_info(rank, static_cast<int>(nodes.size()), REVERSE_TREE_WIDTH, &parent, &below, &depth,
                      &deepest);
    if (parent < 0 || below < 0) return;  // slurmctld itself is above the first one
    const auto* above = find(nodes[static_cast<std::size_t>(parent)]);
    // Those below the lost one find nobody above them, and turn to slurmctld.
    if (above && !IS_NODE_DOWN(above)) send_word(*above, step, rank, rank + below);
}

}  // namespace

std::vector<const step_record_t*> training_steps(const job_record_t& job) {
    std::vector<const step_record_t*> out;
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (step->state == JOB_RUNNING && is_normal(*step) && !(step->flags & SSF_OVERLAP_FORCE))
            out.push_back(step);
    return out;
}

bool was_on(const step_record_t& step, const std::string& node) {
    return std::ranges::count(nodes_of(step), node) != 0;
}

void complete_for_lost_nodes(const job_record_t& job) {
    for (const auto* step : entries<step_record_t>(job.step_list)) {
        if (!is_normal(*step)) continue;
        const auto nodes = nodes_of(*step);
        for (std::size_t rank = 0; rank < nodes.size(); ++rank)
            if (const auto* node = find(nodes[rank]); node && IS_NODE_DOWN(node))
                complete_for(step->step_id, nodes, static_cast<int>(rank));
    }
}

}  // namespace banyan::slurm
