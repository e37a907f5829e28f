// SPDX-License-Identifier: BSD-3-Clause
//
// Stands in for libslurm.cpp where the build found no libslurm: every call says so.
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {
namespace {

std::unexpected<error> absent() {
    return fail(errc::unavailable, "banyan was built without libslurm",
                "install libslurm-dev and build again");
}

class no_cluster final : public cluster {
  public:
    result<std::uint32_t> node_count() override { return absent(); }
    result<node_status> node(const std::string&) override { return absent(); }
    result<std::vector<job_status>> running_jobs() override { return absent(); }
    result<std::vector<job_status>> jobs_on(const std::string&) override { return absent(); }
    result<job_status> job(std::uint32_t) override { return absent(); }
    result<std::vector<step_status>> steps(std::uint32_t) override { return absent(); }
    result<left_behind> processes(std::uint32_t, const step_status&, const std::string&) override {
        return absent();
    }
    result<std::optional<std::uint32_t>> nodes_needed(const job_status&) override { return absent(); }
    result<bool> starts_again(const job_status&) override { return absent(); }
    result<node_ranks> ranks_on(const job_status&, const std::string&) override { return absent(); }
    result<void> set_down(const std::string&, const std::string&) override { return absent(); }
    result<void> set_lost(const std::string&, const std::string&) override { return absent(); }
    result<void> set_drain(const std::string&, const std::string&) override { return absent(); }
    result<void> release(const std::string&) override { return absent(); }
    result<void> resume(const std::string&) override { return absent(); }
    result<void> end_step(std::uint32_t, std::uint32_t) override { return absent(); }
    result<void> requeue(std::uint32_t) override { return absent(); }
    result<void> tell(std::uint32_t, const std::string&) override { return absent(); }
    result<void> start_now(std::uint32_t) override { return absent(); }
};

}  // namespace

std::unique_ptr<cluster> make_slurm_cluster() { return std::make_unique<no_cluster>(); }

}  // namespace banyan::fault
