// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's socket for news of jobs: who is heard, and how much of it.
#include <csignal>
#include <filesystem>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "fault/agent/job_watch.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_job_watch {

using namespace banyan;
using namespace banyan::fault;
using kind = job_news::kind;

namespace {

struct heard_news {
    kernel_fault fault;
    std::string text;
    std::uint32_t job = 0;
};

class bench {
  public:
    banyan::testing::held_run time;
    config settings = load_config({}, "n03").value();
    std::vector<heard_news> heard;
    asio::io_context io;

    bench() { settings.agent_socket = banyan::testing::scratch_path("agent").string(); }
    job_watch watch() {
        return job_watch(io, settings,
                         [this](kernel_fault fault, const std::string& text, std::uint32_t job) {
                             heard.push_back({std::move(fault), text, job});
                         });
    }
    bool wait(std::size_t count) {
        time.until(io, [&] { return heard.size() >= count; });
        return heard.size() == count;
    }
};

std::string datagram(std::uint32_t job, const char* what = "task-ended", int status = 256) {
    return nlohmann::json{{"what", what},     {"job", job}, {"step", 2},    {"rank", 5},
                          {"status", status}, {"more", 0},  {"text", "why"}}
        .dump();
}

}  // namespace

TEST_CASE("what root's programs tell of a job is heard as it is", "[fault]") {
    bench b;
    {
        auto w = b.watch();
        w.start();
        b.io.poll();
        struct stat there {};
        REQUIRE(::stat(b.settings.agent_socket.c_str(), &there) == 0);
        CHECK((there.st_mode & 0777) == 0600);
        REQUIRE(tell_agent(b.settings.agent_socket, {kind::task_ended, 17, 2, 5, SIGBUS, 0, {}}));
        REQUIRE(tell_agent(b.settings.agent_socket, {kind::task_ended, 17, 2, 6, 1 << 8, 9, {}}));
        REQUIRE(b.wait(2));
    }
    CHECK(b.heard[0].job == 17);
    CHECK(b.heard[0].text == "step 17.2, rank 5: signal 7 (SIGBUS)");
    CHECK(b.heard[0].fault.code == static_cast<std::uint32_t>(catalog::symptom::job_crashed));
    CHECK(b.heard[1].text == "step 17.2, rank 6: exit code 1 (and 9 more that were not told)");
    CHECK(b.heard[1].fault.code == static_cast<std::uint32_t>(catalog::symptom::job_failed));
    // The socket of an agent that is gone is nobody's.
    CHECK(tell_agent(b.settings.agent_socket, {kind::task_ended, 17, 2, 5, SIGBUS, 0, {}}).error().code ==
          errc::not_found);
}

TEST_CASE("a user is not heard, whatever he sends", "[fault]") {
    bench b;
    auto w = b.watch();
    w.take(datagram(17), ::geteuid() == 4711 ? 4712 : 4711, 1000);
    w.take("{", 0, 1000);
    w.take(datagram(0), 0, 1000);
    CHECK(b.heard.empty());
    w.take(datagram(17), 0, 1000);
    w.take(datagram(17), ::geteuid(), 1000);
    CHECK(b.heard.size() == 2);
}

TEST_CASE("a job that fails again and again is told of a few times a minute, and counted", "[fault]") {
    bench b;
    auto w = b.watch();
    for (int n = 0; n < 10'000; ++n) w.take(datagram(17), 0, 1000 + n);
    CHECK(b.heard.size() == 8);
    // It takes nothing from another's share, and its last word is heard.
    w.take(datagram(18), 0, 2000);
    CHECK(b.heard.back().job == 18);
    w.take(datagram(17, "given-up"), 0, 2000);
    CHECK(b.heard.back().text == "job 17: banyan-run says: why");
    b.heard.clear();
    w.take(datagram(17), 0, 62'000);
    w.take(datagram(17), 0, 62'001);
    for (int n = 0; n < 20; ++n) w.take(datagram(17), 0, 62'002);
    w.take(datagram(17), 0, 130'000);
    CHECK(b.heard.back().text == "step 17.2, rank 5: exit code 1 (and 14 more that were not told)");
    b.heard.clear();
    // Nor does one kind from another's.
    w.take(datagram(17, "copy-damaged"), 0, 130'500);
    for (int n = 0; n < 20; ++n) w.take(datagram(17), 0, 130'600);
    for (int n = 0; n < 20; ++n) w.take(datagram(17, "copy-damaged"), 0, 130'700);
    CHECK(b.heard.size() == 8 - 1 + 8);
    CHECK(b.heard.back().text.find("is damaged") != std::string::npos);
    b.heard.clear();
    // Of very many jobs within a minute the first are enough.
    for (std::uint32_t job = 1000; job < 10'000; ++job) w.take(datagram(job), 0, 131'000);
    CHECK(b.heard.size() <= 1024);
    w.take(datagram(20'000), 0, 200'000);
    CHECK(b.heard.back().job == 20'000);
}

TEST_CASE("a second agent leaves the socket of the one that runs alone", "[fault]") {
    bench first;
    const auto& path = first.settings.agent_socket;
    const auto hears = [&](bench& b) {
        b.heard.clear();
        REQUIRE(tell_agent(path, {kind::task_ended, 17, 2, 5, SIGBUS, 0, {}}));
        return b.wait(1);
    };
    bench second, third, next;
    {
        auto w = first.watch();
        w.start();
        first.io.poll();
        {
            auto other = second.watch();
            other.start();
            second.io.poll();
            CHECK(hears(first));
        }
        CHECK(hears(first));
        // Somebody took the socket away, and another agent began: it is that one's.
        std::filesystem::remove(path);
        auto other = third.watch();
        other.start();
        third.io.poll();
        CHECK(hears(third));
    }
    CHECK(second.heard.empty());
    CHECK_FALSE(std::filesystem::exists(path));
    // What one that was killed left is nobody's.
    {
        const unique_fd dead(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path.copy(at.sun_path, sizeof at.sun_path - 1);
        REQUIRE(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    }
    auto w = next.watch();
    w.start();
    next.io.poll();
    CHECK(hears(next));
}

TEST_CASE("an agent that ends leaves the socket that is another's by now", "[fault]") {
    bench first, second;
    auto later = second.watch();
    {
        auto w = first.watch();
        w.start();
        first.io.poll();
        std::filesystem::remove(first.settings.agent_socket);
        later.start();
        second.io.poll();
    }
    REQUIRE(tell_agent(second.settings.agent_socket, {kind::task_ended, 17, 2, 5, SIGBUS, 0, {}}));
    CHECK(second.wait(1));
}

}  // namespace test_job_watch
