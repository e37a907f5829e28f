// SPDX-License-Identifier: BSD-3-Clause
//
// In a task of a training step, before it becomes the program: its rank, and where its checkpoints are.
#include <fmt/format.h>
#include <unistd.h>

#include "common/text.hpp"
#include "spank/container.hpp"
#include "spank/held_program.hpp"
#include "spank/plugin.hpp"

namespace banyan::spank {
namespace {

void say(const std::string& what) {
    const auto line = fmt::format("banyan: {}\n", printable(what));
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

// Rank 0's node speaks for all: the others' are often the same words, and what they lack its daemon tells.
// The library in the task has nothing to add.
void tell_user(const std::string& node, std::uint32_t rank, const std::string& why) {
    if (rank != 0) return;
    say(fmt::format("checkpoints are off on {}: {}", node, why));
}

/// What the task is told by variables.
class task_variables {
  public:
    explicit task_variables(spank_t sp) : sp_(sp) {}

    void set(const std::string& name, const std::string& value) {
        spank_setenv(sp_, name.c_str(), value.c_str(), 1);
        told_.push_back({name, value, true});
    }
    /// The user's own wins.
    void propose(const std::string& name, const std::string& value) {
        spank_setenv(sp_, name.c_str(), value.c_str(), 0);
        told_.push_back({name, value, false});
    }
    const std::vector<task_variable>& told() const { return told_; }

  private:
    spank_t sp_;
    std::vector<task_variable> told_;
};

/// A task that starts `ranks_here` ranks itself, which it numbers from its own number on.
void set_launcher(spank_t sp, task_variables& to, std::uint32_t node_rank, std::uint32_t nodes,
                  std::uint32_t ranks_here) {
    to.set("BANYAN_NODE_RANK", std::to_string(node_rank));
    to.set("BANYAN_NNODES", std::to_string(nodes));
    to.set("BANYAN_NPROC_PER_NODE", std::to_string(ranks_here));
    // torchrun takes the options that its command line lacks from these.
    to.propose("PET_NODE_RANK", std::to_string(node_rank));
    to.propose("PET_NNODES", std::to_string(nodes));
    to.propose("PET_NPROC_PER_NODE", std::to_string(ranks_here));
    to.propose("PET_MASTER_ADDR", job_variable(sp, "MASTER_ADDR"));
    to.propose("PET_MASTER_PORT", job_variable(sp, "MASTER_PORT"));
}

void set_checkpoints(spank_t sp, task_variables& to, std::uint32_t rank) {
    const auto ckpt =
        train::parse_checkpoint(job_variable(sp, train::option_names[train::checkpoint].variable));
    if (!ckpt) return;
    to.set("BANYAN_CKPT_EVERY", std::to_string(ckpt->every));
    const auto& [socket, why] = daemon_of_step();
    if (!socket.empty()) to.set("BANYAN_CKPT_SOCKET", socket);
    if (why.empty()) {
        spank_unsetenv(sp, "BANYAN_CKPT_OFF");  // of the step that has started this one
    } else {
        to.set("BANYAN_CKPT_OFF", why);
        tell_user(job_variable(sp, "SLURMD_NODENAME"), rank, why);
    }
}

// A copy of the program that knows no rank would train alone. Of an optional plugin Slurm hears no failure.
[[noreturn]] void not_started(const error& why) {
    say(fmt::format("not started: its container cannot be told its rank: {}", why.text()));
    ::_exit(1);
}

}  // namespace

int set_task_environment(spank_t sp) {
    if (const auto code = parse_number(job_variable(sp, refusal_variable), 255))
        ::_exit(static_cast<int>(*code));
    const auto shape_text = job_variable(sp, "BANYAN_SHAPE");
    if (shape_text.empty() || !is_training_step(sp)) return SLURM_SUCCESS;
    if (shape_text.size() > train::max_option_text) return SLURM_SUCCESS;
    const auto shape = topo::parse_shape(shape_text);
    std::uint32_t job = 0, step = 0, rank = 0, world = 0, local_world = 0;
    int local = 0;
    const auto each = parse_number(job_variable(sp, "BANYAN_NPROC_PER_NODE"), topo::max_ranks_per_node);
    if (!shape || spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_TASK_ID, &local) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &world) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &local_world) != ESPANK_SUCCESS ||
        world * (each ? *each : 1) != shape->ranks())
        return SLURM_SUCCESS;

    task_variables to(sp);
    const auto set = [&](const std::string& name, const std::string& value) { to.set(name, value); };
    set("BANYAN_JOB", std::to_string(job));
    set("BANYAN_STEP", std::to_string(step));
    set("BANYAN_NODE", job_variable(sp, "SLURMD_NODENAME"));
    for (const auto dimension : topo::all_dimensions)
        set(dimension_variable(dimension, "SIZE"), std::to_string(shape->size(dimension)));
    if (each) {
        set_launcher(sp, to, rank, world, static_cast<std::uint32_t>(*each));
    } else {
        set("RANK", std::to_string(rank));
        set("WORLD_SIZE", std::to_string(world));
        set("LOCAL_RANK", std::to_string(local));
        set("LOCAL_WORLD_SIZE", std::to_string(local_world));
        const auto coordinates = shape->coordinates(rank);
        for (const auto dimension : topo::all_dimensions)
            set(dimension_variable(dimension, "RANK"), std::to_string(coordinates[dimension]));
    }
    // A fault must surface as an error that ends the step, not as a hang: the supervisor then starts the next
    // one.
    set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3");

    // The order of the ranks is no wish of the task's: its own srun would take it for one.
    spank_unsetenv(sp, "SLURM_DISTRIBUTION");
    set_checkpoints(sp, to, rank);
    if (const auto told = tell_container(sp, to.told()); !told) not_started(told.error());
    release_program(sp);
    return SLURM_SUCCESS;
}

}  // namespace banyan::spank
