// SPDX-License-Identifier: BSD-3-Clause
//
// Whose job a process is, by its cgroup.
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "fault/sources/process_job.hpp"
#include "test/scratch_path.hpp"

namespace test_process_job {

using namespace banyan::fault;

std::uint32_t number_in(std::string_view text) {
    const auto group = job_in_cgroup(text);
    return group ? group->job : 0;
}

TEST_CASE("a process's job is what slurmstepd made of it", "[fault]") {
    CHECK(number_in("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n") == 42);
    CHECK(number_in("0::/system.slice/n07_slurmstepd.scope/job_42/step_batch\n") == 42);
    CHECK(number_in("12:pids:/\n4:memory:/slurm/uid_1000/job_77/step_0/task_0\n0::/\n") == 77);
    CHECK(number_in("4:memory:/slurm_n07/uid_1000/job_77/step_0\n") == 77);
    // Groups that a user made for himself, and what is no job's.
    for (const char* own :
         {"0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_99/step_0\n",
          "0::/user.slice/user-1000.slice/slurm/uid_0/job_99\n", "0::/system.slice/cron.service/job_99\n",
          "0::/job_99\n", "0::/system.slice/slurmstepd.scope/system\n", "0::/slurm/job_99\n",
          "0::/system.slice/slurmstepd.scope/job_x\n", "0::/system.slice/slurmstepd.scope/job_0\n", "job_99",
          "", "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500\n",
          "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/user\n",
          "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV50/step_0\n",
          "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV50u/step_0\n",
          "0::/user.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0\n"})
        CHECK_FALSE(job_in_cgroup(own));
    // Below his own job's he may call them what he likes.
    CHECK(number_in("0::/system.slice/slurmstepd.scope/job_42/step_0/user/slurmstepd.scope/job_99\n") == 42);
}

/// A host's proc/ and sys/fs/cgroup/ with process 7 in a step of a job with a SLUID.
struct sluid_host {
    const std::filesystem::path root = banyan::testing::scratch_path("sluid-host");
    static constexpr const char* step = "system.slice/n1_slurmstepd.scope/sEKNKTV3WPV500/step_0";

    sluid_host() {
        std::filesystem::remove_all(root);
        write("proc/7/cgroup",
              fmt::format("0::/{}/user/task_0/slurmstepd.scope/s0000000000001/step_9\n", step));
        write(fmt::format("sys/fs/cgroup/{}/slurm/cgroup.procs", step), "5\n6\n");
        write("proc/5/cmdline", std::string("sleep\0infinity\0", 15));
        write("proc/6/cmdline", std::string("slurmstepd: [42.0 stepmgr]\0", 27));
    }
    void write(const std::filesystem::path& file, const std::string& text) const {
        std::filesystem::create_directories((root / file).parent_path());
        std::ofstream(root / file) << text;
    }
    std::uint32_t job() const {
        const auto found = job_of_process(root, 7);
        return found ? found->job : 0;
    }
};

TEST_CASE("the slurmstepd of a job with a SLUID knows its number", "[fault]") {
    const sluid_host host;
    if (::geteuid() != 0) return;  // a slurmstepd is root's
    CHECK(host.job() == 42);
    for (const char* title :
         {"slurmstepd: [0.0]", "slurmstepd: [x]", "slurmstepd: [", "slurmd: [42.0]", ""}) {
        INFO(title);
        host.write("proc/6/cmdline", title);
        CHECK(host.job() == 0);
    }
    host.write("proc/6/cmdline", "slurmstepd: [42.batch]");
    CHECK(host.job() == 42);
    // One that a user calls so, and a step that has ended.
    REQUIRE(::chown((host.root / "proc/6").c_str(), 65534, 65534) == 0);
    CHECK(host.job() == 0);
    std::filesystem::remove_all(host.root / "sys");
    CHECK(host.job() == 0);
}

}  // namespace test_process_job
