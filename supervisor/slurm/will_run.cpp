// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/slurm/will_run.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "common/text.hpp"
#include "supervisor/slurm/begin_anew.hpp"
#include "train/slurm/libslurm.hpp"

namespace banyan::supervisor {
namespace {

template <class Message>
using owned = std::unique_ptr<Message, void (*)(Message*)>;

std::unexpected<error> no_answer(const std::string& doing) {
    return fail(errc::unavailable, fmt::format("{}: {}", doing, slurm_strerror(libslurm::last_error())));
}

bool is_in(std::string_view name, std::string_view list) {
    const auto names = split(list, ',');
    return std::ranges::find(names, name) != names.end();
}

/// What `job` asked for, on `more` nodes beside its own.
void ask_like(const slurm_job_info_t& job, std::uint32_t more, std::string& others, std::string& host,
              job_desc_msg_t& out) {
    slurm_init_job_desc_msg(&out);
    out.user_id = ::getuid();
    out.group_id = ::getgid();
    out.alloc_node = host.data();
    out.work_dir = job.work_dir;  // since 25.05 there is no job without one
    out.account = job.account;
    out.partition = job.partition;
    out.qos = job.qos;
    out.reservation = job.resv_name;
    out.features = job.features;
    out.time_limit = job.time_limit;
    out.shared = job.shared;
    out.exc_nodes = others.data();
    out.min_nodes = out.max_nodes = more;
    out.pn_min_memory = job.pn_min_memory;
    out.pn_min_cpus = job.pn_min_cpus;
    out.pn_min_tmp_disk = job.pn_min_tmp_disk;
    out.tres_per_node = job.tres_per_node;
    out.tres_per_socket = job.tres_per_socket;
    out.tres_per_task = job.tres_per_task;
    out.cpus_per_tres = job.cpus_per_tres;
    out.mem_per_tres = job.mem_per_tres;
    out.cpus_per_task = job.cpus_per_task;
    out.ntasks_per_node = job.ntasks_per_node;
    if (job.ntasks_per_node != 0 && job.ntasks_per_node < NO_VAL16)
        out.num_tasks = more * job.ntasks_per_node;
}

/// Slurm would start it at once, beside all others.
result<bool> would_start(job_desc_msg_t& request) {
    will_run_response_msg_t* answer = nullptr;
    if (slurm_job_will_run2(&request, &answer) != SLURM_SUCCESS || !answer)
        return no_answer("Slurm has no more nodes for the job");
    const owned<will_run_response_msg_t> owner(answer, slurm_free_will_run_response_msg);
    return answer->start_time <= std::time(nullptr) + 1 && !answer->preemptee_job_id;
}

/// The partitions that share nodes with the one called `name`, which is among them.
result<std::set<std::string>> partitions_beside(const std::string& name) {
    partition_info_msg_t* answer = nullptr;
    if (slurm_load_partitions(0, &answer, SHOW_ALL) != SLURM_SUCCESS)
        return no_answer("cannot read the partitions");
    const owned<partition_info_msg_t> owner(answer, slurm_free_partition_info_msg);
    const auto nodes_of = [](const partition_info_t& partition) {
        auto names = expand_hostlist(partition.nodes ? partition.nodes : "");
        return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
    };
    std::set<std::string> own, out{name};
    for (std::uint32_t i = 0; i < answer->record_count; ++i)
        if (name == answer->partition_array[i].name) own = nodes_of(answer->partition_array[i]);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto theirs = nodes_of(answer->partition_array[i]);
        if (std::ranges::any_of(theirs, [&](const auto& node) { return own.contains(node); }))
            out.insert(answer->partition_array[i].name);
    }
    return out;
}

/// What a job says that lacks nothing but nodes, or that Slurm has not looked at yet.
bool waits_for_nodes(const slurm_job_info_t& job) {
    return (job.job_state & JOB_STATE_BASE) == JOB_PENDING && !(job.job_state & JOB_COMPLETING) &&
           (job.state_reason == WAIT_NO_REASON || job.state_reason == WAIT_PRIORITY ||
            job.state_reason == WAIT_RESOURCES || job.state_reason == WAIT_NODE_NOT_AVAIL);
}

result<bool> others_wait(const slurm_job_info_t& own) {
    slurm_conf_t* conf = nullptr;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) return no_answer("cannot read slurm.conf");
    const bool hidden = conf->private_data & PRIVATE_DATA_JOBS;
    libslurm::free_conf(conf);
    if (hidden) return fail(errc::denied, "slurmctld does not tell which other jobs wait (PrivateData=jobs)");
    BANYAN_TRY(const auto partitions, partitions_beside(own.partition ? own.partition : ""));
    job_info_msg_t* answer = nullptr;
    if (slurm_load_jobs(0, &answer, SHOW_ALL) != SLURM_SUCCESS) return no_answer("cannot read the jobs");
    const owned<job_info_msg_t> owner(answer, slurm_free_job_info_msg);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& job = answer->job_array[i];
        if (!waits_for_nodes(job)) continue;
        for (const auto& name : partitions)
            if (is_in(name, job.partition ? job.partition : "")) return true;
    }
    return false;
}

}  // namespace

result<bool> could_have(std::uint32_t job, std::uint32_t all, std::uint32_t more) {
    job_info_msg_t* answer = nullptr;
    if (libslurm::load_job(&answer, job) != SLURM_SUCCESS)
        return no_answer(fmt::format("cannot read job {}", job));
    const owned<job_info_msg_t> owner(answer, slurm_free_job_info_msg);
    if (answer->record_count == 0) return fail(errc::not_found, fmt::format("Slurm has no job {}", job));
    const auto& own = answer->job_array[0];
    std::string others = own.nodes ? own.nodes : "";
    if (own.exc_nodes && *own.exc_nodes) others += std::string(",") + own.exc_nodes;
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    std::string host = name;
    job_desc_msg_t request;
    ask_like(own, more, others, host, request);
    BANYAN_TRY(const auto starts, would_start(request));
    if (!starts) return false;
    BANYAN_TRY(const auto anew, could_begin_anew(own, all));
    if (!anew) return false;
    BANYAN_TRY(const auto waiting, others_wait(own));
    return !waiting;
}

}  // namespace banyan::supervisor
