// SPDX-License-Identifier: BSD-3-Clause
#include "spank/srun_step.hpp"

#include <cstdlib>

#include <fmt/ranges.h>

#include "common/text.hpp"
#include "spank/held_program.hpp"
#include "spank/helper_step.hpp"
#include "spank/job_facts.hpp"
#include "spank/plugin.hpp"
#include "spank/slurm_options.hpp"
#include "spank/srun_args.hpp"
#include "spank/step_plan.hpp"
#include "train/job_size.hpp"
#include "train/min_dp.hpp"
#include "train/slurm/own_conf.hpp"

namespace banyan::spank {
namespace {

step_decision decided;

/// With --export=NONE, or a list, the tasks get what it names: what tells them their ranks has to be there.
bool export_ranks(const slurm_options& srun) {
    if (!srun.is_set("export")) return true;
    return srun.set("export",
                    fmt::format("BANYAN_SHAPE,BANYAN_STEP_NODES,BANYAN_STEP_RESTART,BANYAN_NPROC_PER_NODE,"
                                "MASTER_ADDR,MASTER_PORT,{},{},{},{}",
                                program_variable, refusal_variable,
                                train::option_names[train::checkpoint].variable, srun.text("export")));
}

/// Slurm lays the step out by a list with a node for each task. It takes no -N beside that.
bool ask_for_order(const slurm_options& srun, const topo::request& request,
                   const std::vector<std::string>& order) {
    return srun.reset("nodes") && srun.set("distribution", "arbitrary") &&
           srun.set("nodelist", fmt::format("{}", fmt::join(train::node_of_each_task(request, order), ",")));
}

void ask_for(const slurm_options& srun, std::uint32_t nodes, const topo::request& request,
             const std::vector<std::string>& nodelist = {}, const std::vector<std::string>& order = {}) {
    // What the step itself counts it counts for its own nodes.
    const bool own_gpus = srun.is_typed('G') && nodes == request.nodes;
    const bool done = (own_gpus || share_out_gpus(srun, request)) && export_ranks(srun) &&
                      srun.set("nodes", std::to_string(nodes)) &&
                      srun.set("ntasks", std::to_string(request.tasks())) &&
                      srun.set("ntasks-per-node", std::to_string(request.tasks_per_node())) &&
                      (nodelist.empty() || srun.set("nodelist", compress_hostlist(nodelist)));
    if (done && !order.empty() && !ask_for_order(srun, request, order))
        refuse("srun takes no order of its tasks");
    if (!done) refuse("srun takes no other number of nodes or tasks than was typed");
    decided.training = request;
}

/// srun makes an allocation of its own: of all nodes, and its step is that of the ranks.
void settle_allocation(spank_t sp, const slurm_options& srun, const train::options& asked) {
    const auto request = train::request_from(asked, stated_by(srun));
    if (!request) refuse(request.error().text());
    if (!*request && says_train())
        refuse("--train needs --train-parallel=SHAPE beside it, or a job with one");
    if (!*request) return;
    if (srun.is_set("overlap")) return be_never_training(srun, "it says --overlap");
    const auto own = libslurm::plans_without_select();
    const bool in_blocks = (own && *own) || libslurm::slurmctld_orders_nodes;
    const bool ordered = in_blocks ? (*request)->spares == 0 && topo::ranks_are_consecutive(**request)
                                   : libslurm::slurmctld_orders_ranks;
    if (!ordered)
        refuse(
            "this Slurm cannot order the ranks of such a step whose allocation srun makes; put salloc and "
            "the same options before it: salloc --train-parallel=... srun ...");
    if (in_blocks && !srun.set("distribution", "block")) refuse("srun takes no order of its tasks");
    ask_for(srun, train::all_nodes(**request), **request);
    // The nodes of the step are chosen in slurmctld: srun asks for it right after the allocation.
    spank_job_control_setenv(sp, train::step_mark, train::step_mark_value, 1);
}

/// A shape of the step's own in an allocation that has none.
void settle_own(const slurm_options& srun, const train::options& asked, const train::step_words& words,
                const job_facts& job) {
    auto stated = stated_by(srun);
    stated.tasks = words.tasks;
    stated.tasks_per_node = words.tasks_per_node;
    stated.min_nodes = words.min_nodes ? words.min_nodes : static_cast<std::uint32_t>(words.nodelist.size());
    stated.max_nodes = words.max_nodes;
    if (stated.min_nodes == 0) stated.min_nodes = static_cast<std::uint32_t>(job.running.nodes.size());
    const auto request = train::request_from(asked, stated);
    if (!request) refuse(request.error().text());
    ask_for(srun, (*request)->nodes, **request);
}

/// Ends srun when its own shape is not that of its job.
void check_own_shape(const topo::shape& typed, const std::string& placed, std::uint32_t job,
                     std::uint32_t tasks) {
    if (typed.text() == placed) return;
    if (tasks != 0 && tasks != typed.ranks()) refuse(train::other_tasks(typed, tasks).text());
    refuse(
        fmt::format("--train-parallel={} is not the shape of job {}, which was placed for {}; omit it, or "
                    "submit a job for it",
                    typed.text(), job, placed));
}

/// With --train-min-dp the training is what the nodes that are left hold. Who typed the numbers of all of it
/// means the training still.
void go_on_with_fewer(const slurm_options& srun, topo::request& request, const job_facts& job,
                      train::step_words& words) {
    const auto* plan = job.known_plan();
    const auto left = static_cast<std::uint32_t>(job.running.nodes.size());
    const auto fewer = plan ? train::request_on(request, plan->min_nodes, left) : std::nullopt;
    if (!fewer || fewer->nodes == request.nodes) return;
    // A number for the whole job.
    if (!srun.is_typed('G') && !share_out_gpus(srun, request)) refuse("srun takes no other number of GPUs");
    if (words.tasks == request.tasks()) words.tasks = 0;
    if (words.min_nodes == request.nodes && words.max_nodes == request.nodes)
        words.min_nodes = words.max_nodes = 0;
    slurm_info("banyan: %zu nodes are left: the training goes on as %s, and not %s", job.running.nodes.size(),
               fewer->dims.text().c_str(), request.dims.text().c_str());
    request = *fewer;
}

/// A step that is the training of job `id`, which is here by its own number, or by that of a component.
void settle_training(const slurm_options& srun, const train::options& asked, train::step_words words,
                     std::uint32_t id, std::uint32_t component, bool inherited) {
    auto job = read_job(id, component);
    if (!job && job.error().code == errc::not_found && component != 0)
        return be_never_training(srun, "it is for a component that does not train");
    if (!job) refuse(job.error().text());
    if (inherited)
        add_plan_without_select(*job, asked,
                                in_heterogeneous_job() ? std::optional(component) : std::nullopt);
    if (!job->plan)
        slurm_error("banyan: %s; the step has the numbers that were submitted",
                    job->plan.error().text().c_str());
    const auto* plan = job->known_plan();
    if (plan) decided.restart = plan->restart;
    if (given_here(train::parallel) && plan) check_own_shape(*asked.parallel, plan->shape, id, words.tasks);
    if (plan && plan->shape != asked.parallel->text())
        return be_never_training(srun, "the environment is that of another job");
    if (!plan && !inherited) return settle_own(srun, asked, words, *job);
    if (!inherited) refuse_what_the_job_decides();
    auto request = request_of(*job, asked);
    if (!request) refuse(request.error().text());
    go_on_with_fewer(srun, *request, *job, words);
    const auto numbers = train::numbers_of_training(
        {*request, job->running.nodes, plan ? plan->spares : std::vector<std::string>{},
         plan ? plan->order : std::vector<std::string>{}},
        words);
    if (!numbers) refuse(numbers.error().text());
    if (words.relative)
        refuse(
            "srun cannot order the ranks of a step that names its nodes by their place; write -w in "
            "place of -r");
    ask_for(srun, numbers->nodes, *request, numbers->nodelist, numbers->order);
}

void settle_in_job(const slurm_options& srun, std::uint32_t id, bool by_a_rank) {
    const auto component = component_of(srun);
    const bool here = variable("SLURM_JOB_ID") == std::to_string(id);
    const bool in_het = here && in_heterogeneous_job();
    const auto typed = asked_options();
    if (!typed) refuse(typed.error().text());
    const bool own_shape = given_here(train::parallel);
    if (!component && (own_shape || says_train()))
        refuse("a step of several components is never the training; omit --train and --train-parallel");
    if (!component) return;
    if (in_het) use_component(*component);
    auto asked = asked_options();
    if (!asked) return;
    if (!asked->parallel && own_shape)
        refuse(fmt::format(
            "--train-parallel={} is not for component {} of job {}, which was submitted without it",
            typed->parallel->text(), *component, id));
    if (!asked->parallel && says_train())
        refuse(
            fmt::format("--train: job {} has no --train-parallel that this srun knows; add "
                        "--train-parallel=SHAPE, or omit --train",
                        id));
    if (!asked->parallel) return;
    const bool inherited = in_het || (was_inherited(train::parallel) && here);
    auto words = words_of(srun, in_het ? component : std::nullopt);
    // In a job without a shape the variable is for this srun, if it is not from the training that runs it.
    words.training = says_train() || own_shape || (here && !inherited && !by_a_rank);
    if (inherited) refuse_what_the_job_decides();
    if (in_het && own_shape) check_own_shape(*typed->parallel, asked->parallel->text(), id, words.tasks);
    if (is_helper(srun, words, *asked, in_het ? component : std::nullopt)) return;
    settle_training(srun, *asked, std::move(words), id, *component, inherited);
}

}  // namespace

void settle_step(spank_t sp) {
    decided = {};
    const bool by_a_rank = started_by_a_rank();
    forget_ranks();
    const auto* srun = slurm_options::of_srun();
    if (!srun || srun->is_set("no-allocate")) return;  // -Z knows no job
    const auto job = number_in(srun->text("jobid"));
    if (job != 0) return settle_in_job(*srun, job, by_a_rank);
    // Components of an allocation that srun makes have numbers of their own.
    if (srun->is_set("het-group") || in_heterogeneous_job()) {
        if (says_train()) be_never_training(*srun, "it has several components");
        return;
    }
    const auto asked = asked_options();
    if (!asked) refuse(asked.error().text());
    settle_allocation(sp, *srun, *asked);
}

const step_decision& this_step() { return decided; }

void refuse(const std::string& why) {
    slurm_error("banyan: %s", why.c_str());
    std::exit(code_of_errors());
}

}  // namespace banyan::spank
