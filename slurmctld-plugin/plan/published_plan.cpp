// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/published_plan.hpp"

#include <string>

#include "slurmctld-plugin/plan/admin_line.hpp"
#include "slurmctld-plugin/supplement.hpp"
#include "train/admin_comment.hpp"
#include "train/plan_summary.hpp"

namespace banyan::slurm {
namespace {

std::string head() { return std::string(train::summary_variable) + "="; }

bool is_summary(std::string_view entry) { return entry.starts_with(head()); }

}  // namespace

void publish_plan(job_record_t& job, const train::plan& plan) {
    replace_supplement(job, is_summary, {head() + train::summary_text(plan)});
    set_admin_line(job, train::admin_comment(plan));
}

void retract_plan(job_record_t& job) {
    replace_supplement(job, is_summary, {});
    set_admin_line(job, {});
}

}  // namespace banyan::slurm
