// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/child.hpp"

namespace test_child {

using namespace banyan::supervisor;

namespace {
const looker nothing = [](pid_t) { return std::chrono::milliseconds(0); };
}

TEST_CASE("the child's exit status comes back", "[supervisor]") {
    signal_watch signals;
    const auto end = run_child({"sh", "-c", "exit 7"}, signals, nothing);
    REQUIRE(end);
    CHECK(end->code == 7);
    CHECK_FALSE(end->cancelled);
    CHECK(run_child({"sh", "-c", "kill -9 $$"}, signals, nothing)->code == 137);
}

TEST_CASE("a program that is not there is an error", "[supervisor]") {
    signal_watch signals;
    const auto end = run_child({"/nowhere/srun"}, signals, nothing);
    REQUIRE_FALSE(end);
    CHECK(end.error().code == banyan::errc::not_found);
}

TEST_CASE("words reach the child as they are", "[supervisor]") {
    signal_watch signals;
    CHECK(run_child({"test", "a  b;$c", "=", "a  b;$c"}, signals, nothing)->code == 0);
}

TEST_CASE("signals are handed on; those that end a job mark it as cancelled", "[supervisor]") {
    struct row {
        int number;
        bool cancelled;
    };
    const auto r = GENERATE(row{SIGUSR1, false}, row{SIGTERM, true}, row{SIGINT, true});
    signal_watch signals;
    const auto parent = std::to_string(::getpid()), number = std::to_string(r.number);
    const auto end = run_child(
        {"bash", "-c",
         "trap 'exit 5' " + number + "; kill -" + number + " " + parent + "; while :; do sleep 0.01; done"},
        signals, nothing);
    REQUIRE(end);
    CHECK(end->code == 5);
    CHECK(end->cancelled == r.cancelled);
}

TEST_CASE("it is looked at as often as the look asks for", "[supervisor]") {
    signal_watch signals;
    int looks = 0;
    pid_t seen = 0;
    const auto end = run_child({"sleep", "30"}, signals, [&](pid_t child) {
        seen = child;
        if (++looks == 3) ::kill(child, SIGKILL);
        return std::chrono::milliseconds(looks < 3 ? 1 : 0);
    });
    REQUIRE(end);
    CHECK(end->code == 128 + SIGKILL);
    CHECK(looks == 3);
    CHECK(seen > 0);
}

TEST_CASE("the child has the signal mask from before", "[supervisor]") {
    signal_watch signals;
    CHECK(run_child({"sh", "-c", "kill -TERM $$; exit 3"}, signals, nothing)->code == 128 + SIGTERM);
}

TEST_CASE("waiting ends at once when a cancel comes", "[supervisor]") {
    signal_watch signals;
    CHECK_FALSE(signals.wait(banyan::clock::now() + std::chrono::milliseconds(10)));
    const pid_t parent = ::getpid(), other = ::fork();
    if (other == 0) {
        ::kill(parent, SIGTERM);
        ::_exit(0);
    }
    CHECK(signals.wait(banyan::clock::now() + std::chrono::seconds(30)));
    ::waitpid(other, nullptr, 0);
}

}  // namespace test_child
