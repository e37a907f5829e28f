// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/lost_word.hpp"

#include <algorithm>
#include <string>

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

void speak_for_lost(const step_record_t& step, const char* lost) {
    if (step.step_id.step_id >= SLURM_MAX_NORMAL_STEP_ID || !step.step_layout || !step.step_layout->node_list)
        return;
    auto nodes = expand_hostlist(step.step_layout->node_list);
    if (!nodes) return;
    const auto at = std::ranges::find(*nodes, lost);
    if (at == nodes->end()) return;
    const auto rank = static_cast<int>(at - nodes->begin());
    int parent = -1, below = 0, depth = 0, deepest = 0;
    reverse_tree_info(rank, static_cast<int>(nodes->size()), REVERSE_TREE_WIDTH, &parent, &below, &depth,
                      &deepest);
    if (parent < 0 || below < 0) return;  // slurmctld itself is above the first one
    const auto* above = find_node_record((*nodes)[static_cast<std::size_t>(parent)].data());
    // Those below the lost one find nobody above them, and turn to slurmctld.
    if (above && !IS_NODE_DOWN(above)) send_word(*above, step.step_id, rank, rank + below);
}

}  // namespace

void speak_for_lost(const job_record_t& job, const node_record_t& lost) {
    for (const auto* step : entries<step_record_t>(job.step_list)) speak_for_lost(*step, lost.name);
}

}  // namespace banyan::slurm
