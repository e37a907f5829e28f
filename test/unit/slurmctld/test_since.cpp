// SPDX-License-Identifier: GPL-2.0-or-later
//
// How long a job waits already, whatever others wait beside it.
#include <catch2/catch.hpp>

#include "slurmctld-plugin/placement/since.hpp"

namespace test_since {

using banyan::slurm::since_when;

namespace {

/// What of a job_record_t is asked for.
struct job {
    struct detail {
        std::time_t submit_time;
    };
    std::uint32_t job_id;
    std::uint32_t restart_cnt = 0;
    detail* details = nullptr;
};

}  // namespace

TEST_CASE("two jobs that wait reset each other's time by no number of theirs", "[slurmctld]") {
    since_when waits;
    const job one{7}, other{7 + 1024};
    CHECK(waits.seconds(one, 1000) == 0);
    CHECK(waits.seconds(other, 1010) == 0);
    CHECK(waits.seconds(one, 1060) == 60);
    CHECK(waits.seconds(other, 1060) == 50);
}

TEST_CASE("another run of a job, and another job of its number, wait anew", "[slurmctld]") {
    since_when waits;
    job::detail first{500}, second{600};
    job one{7, 0, &first};
    CHECK(waits.seconds(one, 1000) == 0);
    one.restart_cnt = 1;
    CHECK(waits.seconds(one, 1060) == 0);
    one.details = &second;
    CHECK(waits.seconds(one, 1100) == 0);
    CHECK(waits.seconds(one, 1160) == 60);
}

TEST_CASE("of jobs that wait no more nothing is kept for long, and none that waits is forgotten",
          "[slurmctld]") {
    since_when waits;
    std::time_t now = 1000;
    const job patient{1};
    CHECK(waits.seconds(patient, now) == 0);
    for (std::uint32_t id = 2; id < 200'000; ++id) {
        now += 1;
        (void)waits.seconds(job{id}, now);
        if (id % 60 == 0) CHECK(waits.seconds(patient, now) == now - 1000);
    }
    CHECK(waits.size() < 20'000);
}

}  // namespace test_since
