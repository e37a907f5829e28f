// SPDX-License-Identifier: BSD-3-Clause
//
// In srun, once the step exists and before its tasks start: asks slurmctld which node got which ranks, and
// tells the tasks. That is what Slurm really launched, not what was planned.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "common/text.hpp"
#include "spank/held_program.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_args.hpp"
#include "spank/srun_step.hpp"
#include "train/plan_without_select.hpp"

namespace banyan::spank {
namespace {

struct layout_deleter {
    void operator()(slurm_step_layout_t* l) const { slurm_job_step_layout_free(l); }
};
using step_layout = std::unique_ptr<slurm_step_layout_t, layout_deleter>;

/// Names of the step's nodes, the one with the smallest rank first: the slots of the placement, in order.
result<std::vector<std::string>> nodes_by_rank(const slurm_step_layout_t& layout) {
    BANYAN_TRY(const auto names, expand_hostlist(layout.node_list ? layout.node_list : ""));
    if (names.size() != layout.node_cnt)
        return fail(errc::internal, "the step's layout and its node list differ");
    std::vector<std::size_t> order(names.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto first_rank = [&](std::size_t i) {
        return layout.tasks[i] ? *std::min_element(layout.tids[i], layout.tids[i] + layout.tasks[i])
                               : UINT32_MAX;
    };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return first_rank(a) < first_rank(b); });
    std::vector<std::string> out;
    for (const auto i : order) out.push_back(names[i]);
    return out;
}

bool laid_out(const slurm_step_layout_t& layout, const topo::request& request) {
    return layout.node_cnt == request.nodes &&
           std::all_of(layout.tasks, layout.tasks + layout.node_cnt,
                       [&](auto tasks) { return tasks == request.tasks_per_node(); });
}

/// "8,8,5,1 tasks", of many nodes the first.
std::string layout_in_words(const slurm_step_layout_t& layout) {
    constexpr std::uint32_t most = 16;
    std::string out;
    for (std::uint32_t i = 0; i < layout.node_cnt && i < most; ++i)
        out += (i ? "," : "") + std::to_string(layout.tasks[i]);
    return out + (layout.node_cnt > most ? ",... tasks" : " tasks");
}

/// The address under which others reach `node`: Slurm's NodeAddr.
std::string address_of(const std::string& node) {
    node_info_msg_t* info = nullptr;
    if (slurm_load_node_single(&info, const_cast<char*>(node.c_str()), SHOW_ALL) != SLURM_SUCCESS)
        return node;
    std::string out = node;
    if (info->record_count == 1 && info->node_array[0].node_addr) out = info->node_array[0].node_addr;
    slurm_free_node_info_msg(info);
    return out;
}

/// The step exists: were srun to end now, slurmctld would keep the step, and the nodes for it. Its tasks end
/// instead of starting their program.
void end_step(spank_t sp, const std::string& why) {
    slurm_error("banyan: %s", why.c_str());
    ::setenv(refusal_variable, std::to_string(code_of_errors()).c_str(), 1);
    hold_program(sp);
}

}  // namespace

bool started_by_a_rank() { return std::getenv("BANYAN_STEP_NODES") != nullptr; }

void forget_ranks() {
    if (!started_by_a_rank()) return;
    for (const char* name : {"BANYAN_STEP_NODES",  "BANYAN_STEP_RESTART", "BANYAN_SHAPE",
                             "BANYAN_JOB",         "BANYAN_STEP",         "BANYAN_NODE",
                             "MASTER_ADDR",        "MASTER_PORT",         "RANK",
                             "WORLD_SIZE",         "LOCAL_RANK",          "LOCAL_WORLD_SIZE",
                             "BANYAN_NODE_RANK",   "BANYAN_NNODES",       "BANYAN_NPROC_PER_NODE",
                             "PET_NODE_RANK",      "PET_NNODES",          "PET_NPROC_PER_NODE",
                             "PET_MASTER_ADDR",    "PET_MASTER_PORT",     "BANYAN_CKPT_EVERY",
                             "BANYAN_CKPT_SOCKET", "BANYAN_CKPT_OFF",     program_variable,
                             refusal_variable,     train::slots_variable})
        ::unsetenv(name);
    for (const auto dimension : topo::all_dimensions)
        for (const char* what : {"RANK", "SIZE"}) ::unsetenv(dimension_variable(dimension, what).c_str());
}

int announce_step(spank_t sp) {
    std::uint32_t job = 0, step = 0;
    if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return SLURM_SUCCESS;
    if (in_step_of_several()) {
        // Slurm calls this once, for one of them.
        if (trains_somewhere())
            slurm_error(
                "banyan: this step has several components, so its tasks get no rank environment; start the "
                "training by itself, with banyan-run or srun --het-group=N");
        return SLURM_SUCCESS;
    }
    const auto& request = this_step().training;
    if (!request) return SLURM_SUCCESS;
    auto id = libslurm::step_id(job, step);
    const step_layout layout(slurm_job_step_layout_get(&id));
    if (!layout) {
        slurm_error(
            "banyan: slurmctld did not tell the layout of step %u.%u; its tasks get no rank environment", job,
            step);
        return SLURM_SUCCESS;
    }
    if (!laid_out(*layout, *request)) {
        end_step(sp,
                 fmt::format("Slurm has laid step {}.{} out as {}, and not as {} tasks on each of {} nodes; "
                             "omit -m and options of CPUs, or ask for --ntasks-per-node={} at submission",
                             job, step, layout_in_words(*layout), request->tasks_per_node(), request->nodes,
                             request->tasks_per_node()));
        return SLURM_SUCCESS;
    }
    const auto nodes = nodes_by_rank(*layout);
    if (!nodes) {
        slurm_error("banyan: %s", nodes.error().text().c_str());
        return SLURM_SUCCESS;
    }
    // Below the kernel's range of ephemeral ports, and another one for each of a job's steps, so that a step
    // that follows at once does not meet the port of the last.
    constexpr std::uint32_t first_port = 20000, ports = 12000;
    const auto port = first_port + (job * 61 + step) % ports;
    if (request->launchers)
        ::setenv("BANYAN_NPROC_PER_NODE", std::to_string(request->ranks_per_node).c_str(), 1);
    ::setenv("BANYAN_SHAPE", request->dims.text().c_str(), 1);
    ::setenv("BANYAN_STEP_NODES", compress_hostlist(*nodes).c_str(), 1);
    if (this_step().restart) ::setenv("BANYAN_STEP_RESTART", std::to_string(*this_step().restart).c_str(), 1);
    ::setenv("MASTER_ADDR", address_of(nodes->front()).c_str(), 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    hold_program(sp);
    return SLURM_SUCCESS;
}

}  // namespace banyan::spank
