// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/job_plan.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "common/config.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/published_plan.hpp"
#include "slurmctld-plugin/spank_entries.hpp"
#include "train/environment.hpp"
#include "train/plan_seal.hpp"

namespace banyan::slurm {
namespace {

const std::string& munge_socket() {
    static const std::string socket = [] {
        const auto file = config_file::load(default_config_path());
        return file.value_or(config_file::defaults()).section("munge").text("socket");
    }();
    return socket;
}

/// The credential in the job's environment: its pieces in turn, and nothing that looks like another. Empty
/// when there is none.
std::string sealed_text(const job_record_t& job) {
    std::string sealed;
    std::size_t pieces = 0;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i) {
        const std::string_view entry = job.spank_job_env[i] ? job.spank_job_env[i] : "";
        if (!train::names_plan(entry)) continue;
        const auto head = train::plan_variable(pieces++) + "=";
        if (pieces > train::max_plan_pieces || !entry.starts_with(head) ||
            entry.size() > head.size() + train::max_plan_piece)
            return {};
        sealed += entry.substr(head.size());
    }
    return sealed;
}

/// What munge vouched for already, so that it is asked once per plan and not in every job_test.
class known_plans {
  public:
    const train::plan* find(std::uint32_t job, const std::string& sealed) const {
        const auto it = plans_.find(job);
        return it != plans_.end() && it->second.sealed == sealed ? &it->second.plan : nullptr;
    }
    void add(const std::string& sealed, const train::plan& plan) {
        constexpr std::size_t most = 16u << 20;
        if (bytes_ + sealed.size() > most) {
            plans_.clear();
            bytes_ = 0;
        }
        bytes_ += sealed.size();
        plans_[plan.job] = {sealed, plan};
    }

  private:
    struct known {
        std::string sealed;
        train::plan plan;
    };
    std::map<std::uint32_t, known> plans_;
    std::size_t bytes_ = 0;  ///< that were sealed since the last clearing
};
known_plans known;

bool is_for(const train::plan& plan, const job_record_t& job) {
    // A task of an array gets its own id between job_test and its start.
    const bool its_array = job.array_job_id != 0 && plan.job == job.array_job_id;
    return (plan.job == job.job_id || its_array) && plan.restart <= job.restart_cnt;
}

/// unavailable: munge cannot be asked now.
result<train::plan> own_plan(const job_record_t& job) {
    const auto sealed = sealed_text(job);
    if (!train::looks_sealed(sealed)) return fail(errc::denied, "it is not a plan of slurmctld's");
    for (const auto id : {job.job_id, job.array_job_id})
        if (const auto* plan = known.find(id, sealed); plan && is_for(*plan, job)) return *plan;
    BANYAN_TRY(auto opened, train::open_plan(munge_socket(), sealed));
    if (opened.writer != ::geteuid())
        return fail(errc::denied, fmt::format("uid {} wrote it", opened.writer));
    if (!is_for(opened.what, job))
        return fail(errc::denied, fmt::format("it is that of JobId={}", opened.what.job));
    known.add(sealed, opened.what);
    return std::move(opened.what);
}

bool has_plan(const job_record_t& job) {
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
        if (job.spank_job_env[i] && train::names_plan(job.spank_job_env[i])) return true;
    return false;
}

/// Puts the sealed plan into the environment. False, and no plan there, when it cannot be sealed. Where there
/// is no room for the nodes of earlier runs it goes without.
bool write_plan(job_record_t& job, train::plan& plan) {
    remove_entries(job, train::names_plan);
    auto sealed = train::seal_plan(munge_socket(), plan);
    if (!sealed && sealed.error().code == errc::exhausted && !plan.former.empty()) {
        plan.former.clear();
        plan.former_addrs.clear();
        sealed = train::seal_plan(munge_socket(), plan);
    }
    if (!sealed) {
        log_job_once(job.job_id, sealed.error().text() + "; it gets no plan, and cannot keep checkpoints");
        return false;
    }
    const auto pieces = train::pieces_of(*sealed);
    const auto at = job.spank_job_env_size;
    // And the null that ends the array.
    xrecalloc(job.spank_job_env, at + pieces.size() + 1, sizeof(char*));
    for (std::size_t i = 0; i < pieces.size(); ++i)
        job.spank_job_env[at + i] = xstrdup((train::plan_variable(i) + "=" + pieces[i]).c_str());
    job.spank_job_env_size = static_cast<std::uint32_t>(at + pieces.size());
    known.add(*sealed, plan);
    return true;
}

bool on_its_nodes(const train::plan& plan, const job_record_t& job, const ctld_tables& ctld) {
    const auto are = [&](const std::vector<std::string>& names) {
        const auto nodes = ctld.find_nodes(names);
        return std::all_of(nodes.begin(), nodes.end(),
                           [&](int node) { return node >= 0 && is_set(job.node_bitmap, node); });
    };
    return are(plan.nodes) && are(plan.spares);
}

}  // namespace

std::optional<train::plan> stored_plan(const job_record_t& job) {
    if (!has_plan(job)) return std::nullopt;
    auto plan = own_plan(job);
    if (!plan) return std::nullopt;
    return std::move(*plan);
}

void store_plan(job_record_t& job, train::plan plan) {
    plan.job = job.job_id;
    write_plan(job, plan);
    publish_plan(job, plan);
}

void forget_foreign_plan(job_record_t& job) {
    if (!has_plan(job)) return;
    const auto plan = own_plan(job);
    // munge that is away now makes a plan no forgery; where it is one, the prolog sees it.
    if (plan || plan.error().code == errc::unavailable) return;
    log_info(fmt::format("JobId={}: a plan in its SPANK environment goes away: {}", job.job_id,
                         plan.error().what));
    remove_entries(job, train::names_plan);
}

result<void> check_environment(const job_record_t& job) {
    std::vector<const char*> theirs;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
        if (job.spank_job_env[i] && !train::names_plan(job.spank_job_env[i]))
            theirs.push_back(job.spank_job_env[i]);
    return train::check_environment(theirs.data(), static_cast<std::uint32_t>(theirs.size()));
}

void settle_plan(job_record_t& job) {
    forget_foreign_plan(job);
    const auto* ctld = ctld_tables::get();
    if (!ctld || !job.node_bitmap) return;
    auto plan = stored_plan(job);
    // That of the run before tells where shards are, and the prolog does not take it for this run's.
    if (!plan || plan->restart != job.restart_cnt) return;
    if (!on_its_nodes(*plan, job, *ctld)) {
        remove_entries(job, train::names_plan);
        retract_plan(job);
        return;
    }
    if (plan->job == job.job_id) return;
    store_plan(job, std::move(*plan));
}

}  // namespace banyan::slurm
