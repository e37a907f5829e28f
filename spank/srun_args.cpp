// SPDX-License-Identifier: BSD-3-Clause
#include "spank/srun_args.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "common/text.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_step.hpp"
#include "train/srun_code.hpp"

namespace banyan::spank {
namespace {

/// Each once: a node that is named twice is one node for Slurm, too.
std::vector<std::string> names_in(const std::string& text) {
    std::vector<std::string> out;
    if (const auto names = expand_hostlist(text))
        for (const auto& name : *names)
            if (std::ranges::find(out, name) == out.end()) out.push_back(name);
    return out;
}

/// -N as srun has it: "4" or "2-4".
void read_nodes(const slurm_options& srun, std::uint32_t& least, std::uint32_t& most) {
    const auto text = srun.text("nodes");
    least = number_in(text.substr(0, text.find('-')));
    most = text.find('-') == std::string::npos ? least : number_in(text.substr(text.find('-') + 1));
    if (most == 0) most = least;
}

std::string of_component(const char* name, std::uint32_t component) {
    return std::string(name) + "_HET_GROUP_" + std::to_string(component);
}

/// banyan-run started this srun, and the user has not chosen a code for its errors.
bool by_banyan_run = false;

}  // namespace

int code_of_errors() {
    if (by_banyan_run) return train::srun_error_code;
    const auto wanted = number_in(variable(train::srun_error_variable)) % 256;
    return wanted != 0 ? static_cast<int>(wanted) : 1;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string variable_of(const char* name, std::optional<std::uint32_t> component) {
    const auto own = component ? variable(of_component(name, *component).c_str()) : std::string();
    return own.empty() ? variable(name) : own;
}

std::uint32_t number_in(const std::string& text) {
    const auto number = parse_number(text, UINT32_MAX - 2);
    return number ? static_cast<std::uint32_t>(*number) : 0;
}

void prepare_srun() {
    // srun has read it, and the tasks are to have what the user has.
    if (!variable(train::srun_error_is_ours).empty()) {
        by_banyan_run = true;
        ::unsetenv(train::srun_error_variable);
        ::unsetenv(train::srun_error_is_ours);
    }
    // Beside the number of tasks it says nothing, or something that srun finds wrong for each step of another
    // size, and warns of.
    for (std::uint32_t i = 0; i < most_components; ++i) {
        if (!trains(i) || variable(of_component("SLURM_NTASKS", i).c_str()).empty()) continue;
        ::unsetenv(of_component("SLURM_NTASKS_PER_NODE", i).c_str());
        ::unsetenv(("SLURM_NTASKS_PER_NODE_PACK_GROUP_" + std::to_string(i)).c_str());  // its old name
    }
    // In the script of a heterogeneous job the number of its first component, which has it under its own
    // name, too, and since 23.11 every component's srun heeds it.
    if (trains_somewhere() && !variable("SLURM_HET_SIZE").empty())
        for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"})
            if (variable(name) == variable(of_component(name, 0).c_str())) ::unsetenv(name);
    if (!was_inherited(train::parallel) || variable("SLURM_NTASKS").empty()) return;
    ::unsetenv("SLURM_NTASKS_PER_NODE");
    // sbatch counted the tasks of one node, since -N was left to us.
    if (number_in(variable("SLURM_NTASKS")) < number_in(variable("SLURM_JOB_NUM_NODES")))
        for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) ::unsetenv(name);
}

train::step_words words_of(const slurm_options& srun, std::optional<std::uint32_t> component) {
    train::step_words out;
    const auto variable = [&](const char* name) { return variable_of(name, component); };
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
    return out;
}

train::stated_numbers stated_by(const slurm_options& options) {
    train::stated_numbers out;
    if (options.is_set("nodes"))
        read_nodes(options, out.min_nodes, out.max_nodes);
    else
        out.min_nodes = static_cast<std::uint32_t>(names_in(options.text("nodelist")).size());
    if (options.is_set("ntasks")) out.tasks = number_in(options.text("ntasks"));
    if (options.is_set("ntasks-per-node")) out.tasks_per_node = number_in(options.text("ntasks-per-node"));
    out.gpus_per_node = options.is_set("gpus-per-node") ? train::gpus_in(options.text("gpus-per-node"), true)
                                                        : train::gpus_in(options.text("gres"));
    return out;
}

bool share_out_gpus(const slurm_options& options, const topo::request& request) {
    if (!options.is_set("gpus") || options.is_set("ntasks-per-gpu") || options.is_set("gpus-per-task"))
        return true;
    const auto each = train::gpus_of_each(options.text("gpus"), train::all_nodes(request));
    if (!each) refuse(each.error().text());
    return !*each || (options.reset("gpus") && options.set("gpus-per-node", **each));
}

}  // namespace banyan::spank
