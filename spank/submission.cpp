// SPDX-License-Identifier: BSD-3-Clause
#include "spank/submission.hpp"

#include "spank/plugin.hpp"
#include "spank/slurm_options.hpp"
#include "spank/srun_args.hpp"
#include "spank/srun_step.hpp"
#include "train/job_size.hpp"
#include "train/slurm/own_conf.hpp"

namespace banyan::spank {
namespace {

/// Where nodes are shared Slurm allocates what was asked for and no more: the ranks of a node on each node,
/// spares included, since each may come to run them.
bool set_numbers(const slurm_options& options, const topo::request& asked) {
    const auto nodes = train::all_nodes(asked);
    if (!options.set("nodes", std::to_string(nodes))) return false;
    // Tasks that --ntasks-per-gpu counts are Slurm's to multiply.
    if (options.is_set("ntasks-per-gpu")) {
        const auto fits = train::check_tasks_of_gpus(
            asked, train::gpus_in(options.text("gpus-per-node"), true) + train::gpus_in(options.text("gres")),
            number_in(options.text("ntasks-per-gpu")));
        if (!fits) refuse(fits.error().text());
        return true;
    }
    return share_out_gpus(options, asked) &&
           options.set("ntasks-per-node", std::to_string(asked.tasks_per_node())) &&
           options.set("ntasks", std::to_string(nodes * asked.tasks_per_node()));
}

}  // namespace

void settle_submission() {
    const auto asked = asked_options();
    if (!asked) refuse(asked.error().text());
    // With our select plugin job_submit/banyan does all of this, and knows the cluster besides. So it is left
    // to slurmctld where the configuration does not say.
    const auto own = libslurm::plans_without_select();
    if (!own || !*own) return;
    const auto* options = slurm_options::of_submission();
    if (!options) {
        if (asked->parallel)
            slurm_error(
                "banyan: this Slurm's options cannot be set: say -N with the spares, --ntasks-per-node, and "
                "--no-kill where there are spares");
        return;
    }
    const auto request = train::request_from(*asked, stated_by(*options));
    if (!request) refuse(request.error().text());
    if (!*request) return;
    for (const auto option : {train::wait, train::model})
        if (option_text(option))
            slurm_info("banyan: --%s has no effect here: Slurm chooses the nodes, and not banyan",
                       train::option_names[option].option);
    if (!set_numbers(*options, **request))
        refuse("Slurm takes no other number of nodes or tasks than was typed");
    // Without --no-kill Slurm ends the job with the node that a spare is to replace.
    if (((*request)->spares > 0 || asked->min_dp) && !options->set("no-kill", "set"))
        refuse("Slurm takes no --no-kill");
}

}  // namespace banyan::spank
