// SPDX-License-Identifier: BSD-3-Clause
//
// Of a step's tasks that fail all at once a few are told at once, and the number of the rest at the end.
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/fd.hpp"
#include "spank/launch.hpp"
#include "spank/task_ends.hpp"
#include "test/scratch_path.hpp"

namespace test_task_ends {

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

TEST_CASE("a step that ends tells the agent without its configuration", "[spank]") {
    const auto dir = banyan::testing::scratch_path("ends");
    std::filesystem::create_directories(dir);
    settings s;
    s.config = (dir / "banyan.conf").string();
    std::ofstream(s.config) << "[fault]\nagent_socket = \"" << (dir / "agent-%n").string() << "\"\n";
    const auto paths = find_daemon(s, "n03");
    REQUIRE(paths);
    CHECK(paths->agent == (dir / "agent-n03").string());
    const auto tell = to_agent(paths->agent);
    // It may lie on a file system that is gone by the time at which the step ends.
    std::filesystem::remove(s.config);

    CHECK(tell(task(1, SIGBUS)));  // no agent: nobody to tell it to later, either
    CHECK(to_agent({})(task(1, SIGBUS)));
    const unique_fd agent(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(paths->agent.size() < sizeof at.sun_path);
    std::memcpy(at.sun_path, paths->agent.data(), paths->agent.size());
    REQUIRE(::bind(agent.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    CHECK(tell(task(2, SIGBUS)));
    std::array<char, longest_job_news> data;
    const auto got = ::recv(agent.get(), data.data(), data.size(), 0);
    REQUIRE(got > 0);
    const auto news = job_news_from({data.data(), static_cast<std::size_t>(got)});
    REQUIRE(news);
    CHECK(news->rank == 2);
    // One that reads nothing has no room at some time, and is told at the step's end.
    std::uint32_t fits = 0;
    while (fits < 100'000 && tell(task(fits, 1 << 8))) ++fits;
    CHECK(fits < 100'000);
    std::filesystem::remove_all(dir);
}

}  // namespace test_task_ends
