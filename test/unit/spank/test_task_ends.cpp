// SPDX-License-Identifier: BSD-3-Clause
//
// Of a step's tasks that fail all at once a few are told at once, and the number of the rest at the end.
#include <csignal>
#include <vector>

#include <catch2/catch.hpp>

#include "spank/task_ends.hpp"

using namespace banyan;
using namespace banyan::spank;

namespace {

job_news task(std::uint32_t rank, int status) {
    job_news out;
    out.job = 17;
    out.rank = rank;
    out.status = status;
    return out;
}

}  // namespace

TEST_CASE("thousands of tasks that fail are few words", "[spank]") {
    std::vector<job_news> told;
    const auto tell = [&](const job_news& n) {
        told.push_back(n);
        return true;
    };
    task_ends ends;
    for (std::uint32_t rank = 0; rank < 10'000; ++rank) ends.ended(task(rank, 1 << 8), tell);
    ends.ended(task(10'000, SIGBUS), tell);
    // Those that Slurm ends for it are none.
    for (std::uint32_t rank = 0; rank < 100; ++rank) ends.ended(task(rank, SIGKILL), tell);
    CHECK(told.size() == 4);
    CHECK(told.front().rank == 0);
    ends.over(tell);
    REQUIRE(told.size() == 5);
    CHECK(told.back().more == 10'001 - 4 - 1);
    CHECK(told.back().status == SIGBUS);  // it says more than a code
    ends.over(tell);
    CHECK(told.size() == 5);
}

TEST_CASE("a step that ends well says nothing", "[spank]") {
    int told = 0;
    const auto tell = [&](const job_news&) { return ++told > 0; };
    task_ends ends;
    for (std::uint32_t rank = 0; rank < 8; ++rank) ends.ended(task(rank, 0), tell);
    ends.over(tell);
    CHECK(told == 0);
}

TEST_CASE("what the agent had no room for is told at the end", "[spank]") {
    bool room = false;
    std::vector<job_news> told;
    const auto tell = [&](const job_news& n) {
        if (room) told.push_back(n);
        return room;
    };
    task_ends ends;
    ends.ended(task(3, 1 << 8), tell);
    room = true;
    ends.over(tell);
    REQUIRE(told.size() == 1);
    CHECK(told[0].rank == 3);
    CHECK(told[0].more == 0);
}
