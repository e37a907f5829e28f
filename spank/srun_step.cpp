// SPDX-License-Identifier: BSD-3-Clause
#include "spank/srun_step.hpp"

#include <cstdlib>
#include <memory>

#include <banyan/topo/plan.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_options.hpp"
#include "spank/step_numbers.hpp"
#include "spank/train_numbers.hpp"

namespace banyan::spank {
namespace {

step_decision decided;

std::uint32_t number_in(const std::string& text) {
    const auto number = parse_number(text, UINT32_MAX - 2);
    return number ? static_cast<std::uint32_t>(*number) : 0;
}

std::vector<std::string> names_in(const std::string& text) {
    auto names = expand_hostlist(text);
    return names ? std::move(*names) : std::vector<std::string>{};
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// -N as srun has it: "4" or "2-4".
void read_nodes(const srun_options& srun, std::uint32_t& least, std::uint32_t& most) {
    const auto text = srun.text("nodes");
    least = number_in(text.substr(0, text.find('-')));
    most = text.find('-') == std::string::npos ? least : number_in(text.substr(text.find('-') + 1));
    if (most == 0) most = least;
}

train::step_words words_of(const srun_options& srun) {
    train::step_words out;
    if (srun.is_typed('n') || srun.is_set("multi-prog")) out.tasks = number_in(srun.text("ntasks"));
    if (!srun.is_typed('n') && std::to_string(out.tasks) == variable("SLURM_NTASKS")) out.tasks = 0;
    if (srun.is_typed('N')) read_nodes(srun, out.min_nodes, out.max_nodes);
    // srun lowers the allocation's number of nodes to -n, and takes that for typed.
    if (out.tasks != 0 && out.max_nodes == out.tasks &&
        number_in(variable("SLURM_JOB_NUM_NODES")) > out.tasks)
        out.min_nodes = out.max_nodes = 0;
    const auto per_node = srun.text("ntasks-per-node");
    if (srun.is_set("ntasks-per-node") && per_node != variable("SLURM_NTASKS_PER_NODE"))
        out.tasks_per_node = number_in(per_node);
    out.nodelist = names_in(srun.text("nodelist"));
    out.exclude = names_in(srun.text("exclude"));
    out.relative = srun.is_set("relative");
    out.overlap = srun.is_set("overlap");
    return out;
}

train::stated_numbers stated_by(const srun_options& srun) {
    train::stated_numbers out;
    if (srun.is_set("nodes"))
        read_nodes(srun, out.min_nodes, out.max_nodes);
    else
        out.min_nodes = static_cast<std::uint32_t>(names_in(srun.text("nodelist")).size());
    if (srun.is_set("ntasks")) out.tasks = number_in(srun.text("ntasks"));
    if (srun.is_set("ntasks-per-node")) out.tasks_per_node = number_in(srun.text("ntasks-per-node"));
    out.gpus_per_node = srun.is_set("gpus-per-node") ? train::gpus_in(srun.text("gpus-per-node"), true)
                                                     : train::gpus_in(srun.text("gres"));
    return out;
}

/// -G counts those of the spares, too, which the step leaves out.
bool share_out_gpus(const srun_options& srun, const topo::request& request) {
    if (!srun.is_set("gpus") || srun.is_set("ntasks-per-gpu") || srun.is_set("gpus-per-task")) return true;
    const auto each = train::gpus_of_each(srun.text("gpus"), train::all_nodes(request));
    if (!each) refuse(each.error().text());
    return !*each || (srun.reset("gpus") && srun.set("gpus-per-node", **each));
}

void ask_for(const srun_options& srun, std::uint32_t nodes, const topo::request& request,
             const std::vector<std::string>& nodelist = {}) {
    const bool done = (srun.is_typed('G') && nodes == request.nodes || share_out_gpus(srun, request)) &&
                      srun.set("nodes", std::to_string(nodes)) &&
                      srun.set("ntasks", std::to_string(request.dims.ranks())) &&
                      srun.set("ntasks-per-node", std::to_string(request.ranks_per_node)) &&
                      (nodelist.empty() || srun.set("nodelist", compress_hostlist(nodelist)));
    if (!done) refuse("srun takes no other number of nodes or tasks than was typed");
    decided = {step_role::training, request};
}

/// srun makes an allocation of its own: of all nodes, and its step is that of the ranks.
void settle_allocation(spank_t sp, const srun_options& srun, const train::options& asked) {
    const auto request = train::request_from(asked, stated_by(srun));
    if (!request) refuse(request.error().text());
    if (!*request) return;
    ask_for(srun, train::all_nodes(**request), **request);
    // The nodes of the step are chosen in slurmctld: srun asks for it in one breath with the allocation.
    if ((*request)->spares > 0) spank_job_control_setenv(sp, train::step_mark, train::step_mark_value, 1);
}

struct job_facts {
    std::vector<std::string> nodes;
    std::uint32_t tasks_per_node = 0;  ///< 0: not given
    result<topo::admin_summary> plan;
};

result<job_facts> read_job(std::uint32_t job) {
    job_info_msg_t* answer = nullptr;
    if (slurm_load_job(&answer, job, SHOW_ALL) != SLURM_SUCCESS)
        return fail(errc::unavailable, fmt::format("cannot read job {}: {}", job, slurm_strerror(errno)));
    const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer, slurm_free_job_info_msg);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& record = answer->job_array[i];
        if (record.job_id != job) continue;
        BANYAN_TRY(auto nodes, expand_hostlist(record.nodes ? record.nodes : ""));
        const auto per_node = record.ntasks_per_node;
        return job_facts{std::move(nodes), per_node < NO_VAL16 ? per_node : 0u,
                         topo::parse_admin_comment(record.admin_comment ? record.admin_comment : "")};
    }
    return fail(errc::not_found, fmt::format("Slurm has no job {}", job));
}

/// The plan's numbers; of a job that was placed without one those that were submitted.
result<topo::request> request_of(const job_facts& job, const train::options& asked) {
    if (job.plan && job.plan->nodes != 0)
        return topo::make_request(*asked.parallel, job.plan->nodes + asked.spares,
                                  job.plan->ranks / job.plan->nodes, asked.spares);
    const auto ranks = asked.parallel->ranks();
    const auto per_node = job.tasks_per_node;
    const auto nodes = per_node != 0 && ranks % per_node == 0 ? ranks / per_node + asked.spares
                                                              : static_cast<std::uint32_t>(job.nodes.size());
    return topo::make_request(*asked.parallel, nodes, per_node, asked.spares);
}

/// A shape of the step's own in an allocation that has none.
void settle_own(const srun_options& srun, const train::options& asked, const train::step_words& words,
                const job_facts& job) {
    auto stated = stated_by(srun);
    stated.tasks = words.tasks;
    stated.tasks_per_node = words.tasks_per_node;
    stated.min_nodes = words.min_nodes ? words.min_nodes : static_cast<std::uint32_t>(words.nodelist.size());
    stated.max_nodes = words.max_nodes;
    if (stated.min_nodes == 0) stated.min_nodes = static_cast<std::uint32_t>(job.nodes.size());
    const auto request = train::request_from(asked, stated);
    if (!request) refuse(request.error().text());
    ask_for(srun, (*request)->nodes, **request);
}

void settle_in_job(const srun_options& srun, const train::options& asked, std::uint32_t id) {
    auto words = words_of(srun);
    words.own_shape = given_here(train::parallel);
    if (srun.is_set("interactive") || (words.overlap && !words.own_shape)) {
        decided.role = step_role::helper;
        return;
    }
    if (srun.text("distribution").starts_with("arbitrary")) return;  // laid out by hand
    const auto job = read_job(id);
    if (!job) {
        slurm_error("banyan: %s; the step has the numbers that were typed", job.error().text().c_str());
        return;
    }
    const bool inherited = was_inherited(train::parallel) && variable("SLURM_JOB_ID") == std::to_string(id);
    if (job->plan && job->plan->shape != asked.parallel->text()) {
        if (words.own_shape)
            refuse(
                fmt::format("--train-parallel={} is not the shape of job {}, which was placed for {}; leave "
                            "it away, or submit a job for it",
                            asked.parallel->text(), id, job->plan->shape));
        decided.role = step_role::helper;  // of another job than the one whose environment this is
        return;
    }
    if (!job->plan && !inherited) return settle_own(srun, asked, words, *job);
    const auto request = request_of(*job, asked);
    if (!request) return;
    const auto numbers = train::numbers_of_step(
        {*request, job->nodes, job->plan ? job->plan->spares : std::vector<std::string>{}}, words);
    if (!numbers) refuse(numbers.error().text());
    if (!numbers->training) {
        if (!numbers->notice.empty()) slurm_info("banyan: %s", numbers->notice.c_str());
        decided.role = step_role::helper;
        return;
    }
    ask_for(srun, numbers->nodes, *request, numbers->nodelist);
}

}  // namespace

void prepare_srun() {
    if (!was_inherited(train::parallel) || variable("SLURM_NTASKS").empty()) return;
    // Beside the number of tasks it says nothing, or something that srun finds wrong for each step of another
    // size, and warns of.
    ::unsetenv("SLURM_NTASKS_PER_NODE");
    // sbatch counted the tasks of one node, since -N was left to us.
    if (number_in(variable("SLURM_NTASKS")) < number_in(variable("SLURM_JOB_NUM_NODES")))
        for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) ::unsetenv(name);
}

void settle_step(spank_t sp) {
    decided = {};
    forget_ranks();
    const auto* srun = srun_options::get();
    const auto asked = asked_options();
    // Components of a heterogeneous job have numbers of their own; -Z knows no job.
    if (!srun || srun->is_set("het-group") || !variable("SLURM_HET_SIZE").empty() || srun->has_components() ||
        srun->is_set("no-allocate"))
        return;
    if (!asked) refuse(asked.error().text());
    const auto job = number_in(srun->text("jobid"));
    if (job == 0)
        settle_allocation(sp, *srun, *asked);
    else if (asked->parallel)
        settle_in_job(*srun, *asked, job);
}

const step_decision& this_step() { return decided; }

void refuse(const std::string& why) {
    slurm_error("banyan: %s", why.c_str());
    const char* code = std::getenv("SLURM_EXIT_ERROR");
    const auto wanted = code ? number_in(code) : 0;
    std::exit(wanted != 0 ? static_cast<int>(wanted) : 1);
}

}  // namespace banyan::spank
