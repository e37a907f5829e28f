// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/decision.hpp"
#include "supervisor/progress.hpp"

namespace test_decision {

using namespace banyan::supervisor;
using names = std::vector<std::string>;

namespace {

/// A rank failed in a job with a plan of two nodes and one spare; training got from step 4 to 9.
situation usual() {
    situation s;
    s.end = {1, false, std::chrono::hours{1}};
    s.nodes_before = s.now.nodes = {"n01", "n02", "n03"};
    s.nodes_needed = 2;
    s.planned = true;
    s.saved_before = 4;
    s.saved_after = 9;
    s.max_restarts = 10;
    s.max_idle_restarts = 3;
    return s;
}

struct row {
    const char* what;
    void (*change)(situation&);
    action expected;
    std::uint32_t idle;
};

const row rows[] = {
    {"a rank failed", [](situation&) {}, action::restart, 0},
    {"all went well", [](situation& s) { s.end.code = 0; }, action::finish, 0},
    {"cancelled", [](situation& s) { s.end.cancelled = true; }, action::finish, 0},
    {"the job is ending", [](situation& s) { s.now.running = false; }, action::finish, 0},
    {"a node left, a spare is there",
     [](situation& s) {
         s.now.nodes = {"n01", "n03"};
     },
     action::restart, 0},
    {"two nodes left", [](situation& s) { s.now.nodes = {"n01"}; }, action::requeue, 0},
    {"two nodes left, and it may not be requeued",
     [](situation& s) {
         s.now.nodes = {"n01"};
         s.now.no_requeue = "it may not be requeued";
     },
     action::finish, 0},
    {"there is no such program",
     [](situation& s) {
         s.end = {2, false, std::chrono::seconds{1}};
         s.saved_before = s.saved_after = std::nullopt;
     },
     action::finish, 0},
    {"srun does not know an option",
     [](situation& s) {
         s.end = {119, false, std::chrono::milliseconds{40}};
         s.began = false;
     },
     action::finish, 0},
    {"Slurm had no step for a while",
     [](situation& s) {
         s.end = {119, false, std::chrono::minutes{1}};
         s.began = false;
     },
     action::restart, 0},
    {"no such program on the node that came in",
     [](situation& s) {
         s.end = {2, false, std::chrono::seconds{1}};
         s.saved_before = s.saved_after = std::nullopt;
         s.restarts = 1;
     },
     action::restart, 1},
    {"a program that ends with 2 after an hour",
     [](situation& s) {
         s.end.code = 2;
         s.saved_before = s.saved_after = std::nullopt;
     },
     action::restart, 1},
    {"it ends with 2 at once, with training saved before",
     [](situation& s) {
         s.end = {2, false, std::chrono::seconds{1}};
         s.saved_after = 4;
     },
     action::restart, 1},
    {"no such program, and a node was lost",
     [](situation& s) {
         s.end = {127, false, std::chrono::seconds{1}};
         s.saved_before = s.saved_after = std::nullopt;
         s.now.nodes = {"n01", "n03"};
     },
     action::restart, 0},
    {"the limit of restarts", [](situation& s) { s.restarts = 10; }, action::finish, 0},
    {"no progress, first time", [](situation& s) { s.saved_after = 4; }, action::restart, 1},
    {"no progress again and again",
     [](situation& s) {
         s.saved_after = 4;
         s.idle_restarts = 3;
     },
     action::finish, 0},
    {"no progress, but a node was lost",
     [](situation& s) {
         s.saved_after = 4;
         s.idle_restarts = 3;
         s.now.nodes = {"n01", "n03"};
     },
     action::restart, 3},
    {"no progress, but a node that Slurm has yet to take was not reached",
     [](situation& s) {
         s.saved_after = 4;
         s.idle_restarts = 3;
         s.end.code = 233;
     },
     action::restart, 3},
    {"progress clears the count", [](situation& s) { s.idle_restarts = 3; }, action::restart, 0},
    {"a first step saved is progress",
     [](situation& s) {
         s.idle_restarts = 3;
         s.saved_before.reset();
     },
     action::restart, 0},
    {"nothing known of progress counts as none",
     [](situation& s) { s.saved_before = s.saved_after = std::nullopt; }, action::restart, 1},
    {"the controller does not answer",
     [](situation& s) {
         s.now = {false, true, "", {}, {}};
     },
     action::wait, 0},
    {"Slurm has no step for a restart yet",
     [](situation& s) {
         s.end.code = 1;
         s.recovering = true;
         s.began = false;
         s.saved_after = 4;
         s.idle_restarts = 3;
         s.stood = std::chrono::seconds{59};
         s.start_within = std::chrono::seconds{60};
     },
     action::again, 3},
    {"nor a minute later",
     [](situation& s) {
         s.recovering = true;
         s.began = false;
         s.stood = s.start_within = std::chrono::seconds{60};
     },
     action::requeue, 0},
    {"nor a minute later, and the job may not be requeued",
     [](situation& s) {
         s.recovering = true;
         s.began = false;
         s.stood = s.start_within = std::chrono::seconds{60};
         s.now.no_requeue = "it may not be requeued";
     },
     action::finish, 0},
    {"no step for a restart, since a node was lost that the job needs",
     [](situation& s) {
         s.recovering = true;
         s.began = false;
         s.now.nodes = {"n01"};
     },
     action::requeue, 0},
    {"a first step that Slurm refused",
     [](situation& s) {
         s.began = false;
         s.saved_after = 4;
     },
     action::restart, 1},
    {"fewer nodes than all groups need, and the job may do with them",
     [](situation& s) {
         s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 3;
     },
     action::restart, 0},
    {"fewer than it may do with",
     [](situation& s) {
         s.now.nodes = {"n01"};
         s.nodes_of_all = 3;
     },
     action::requeue, 0},
    {"with fewer groups it did not come to train",
     [](situation& s) {
         s.nodes_before = s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 3;
         s.recovering = true;
         s.saved_after = 4;
     },
     action::requeue, 1},
    {"nor then, and the job may not be requeued",
     [](situation& s) {
         s.nodes_before = s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 3;
         s.recovering = true;
         s.saved_after = 4;
         s.now.no_requeue = "it may not be requeued";
     },
     action::restart, 1},
    {"with fewer groups it trained, and a rank failed",
     [](situation& s) {
         s.nodes_before = s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 3;
     },
     action::restart, 0},
    {"a second node is lost before it came to train with fewer groups",
     [](situation& s) {
         s.nodes_before = {"n01", "n02", "n03"};
         s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 4;
         s.recovering = true;
         s.saved_after = 4;
         s.idle_restarts = 3;
     },
     action::restart, 3},
    {"it was ended since it ran on a node that had left, which is back",
     [](situation& s) {
         s.nodes_before = s.now.nodes = {"n01", "n02"};
         s.nodes_of_all = 3;
         s.recovering = true;
         s.left = true;
         s.end.code = 137;
         s.saved_after = 4;
         s.idle_restarts = 3;
     },
     action::restart, 3},
    {"no plan: a failure is srun's", [](situation& s) { s.planned = false; }, action::finish, 0},
    {"no plan, a node left",
     [](situation& s) {
         s.planned = false;
         s.nodes_needed = 1;
         s.now.nodes = {"n02"};
     },
     action::restart, 0},
};

}  // namespace

TEST_CASE("what follows from the end of a step", "[supervisor]") {
    for (const auto& r : rows) {
        auto s = usual();
        r.change(s);
        const auto d = decide(s);
        INFO(r.what << ": " << d.why);
        CHECK(d.what == r.expected);
        if (d.what == action::restart) CHECK(d.idle_restarts == r.idle);
    }
}

TEST_CASE("the line that announces a restart", "[supervisor]") {
    auto s = usual();
    CHECK(restart_line(s, "3.0", {"n03"}) ==
          "step 3.0 ended with code 1; starting it again on the same nodes, restart 1");
    s.now.nodes = {"n01", "n03"};
    CHECK(restart_line(s, "3.0", {"n03"}) ==
          "step 3.0 ended with code 1 (n02 left the allocation); starting it again with n03 instead, restart "
          "1");
    CHECK(restart_line(s, "", {}) ==
          "the step ended with code 1 (n02 left the allocation); starting it again on n[01,03], restart 1");
}

TEST_CASE("no node is said to have left that slurmctld was not heard to take", "[supervisor]") {
    auto s = usual();
    s.now = {false, true, "", {}, {}};
    CHECK(end_line(s, "3.0") == "step 3.0 ended with code 1");
    s.now = {true, false, "gone", {}, {}};
    CHECK(end_line(s, "3.0") == "step 3.0 ended with code 1");
}

TEST_CASE("the newest step in the daemon's status", "[supervisor]") {
    const char* text =
        R"({"sessions":[{"job":4,"committed":{"step":3}},{"job":7,"committed":{"step":42,"generation":2}}]})";
    CHECK(newest_in_status(text, 7) == 42);
    CHECK_FALSE(newest_in_status(text, 5));
    for (const char* wrong : {"", "{", "[]", "{}", R"({"sessions":7})", R"({"sessions":[7,{"job":"7"}]})",
                              R"({"sessions":[{"job":7,"committed":null}]})",
                              R"({"sessions":[{"job":7,"committed":{"step":"x"}}]})"})
        CHECK_FALSE(newest_in_status(wrong, 7));
}

TEST_CASE("who hangs, in the daemon's status", "[supervisor]") {
    const auto hung = hang_in_status(
        R"({"sessions":[{"job":7,"hung":{"ranks":[2,3],"step":40,"text":"ranks 2, 3 hang"}}]})", 7);
    REQUIRE(hung);
    CHECK(hung->ranks == std::vector<std::uint32_t>{2, 3});
    CHECK(hung->step == 40);
    CHECK(hung->text == "ranks 2, 3 hang");
    for (const char* other : {"", R"({"sessions":[{"job":7}]})", R"({"sessions":[{"job":7,"hung":{}}]})",
                              R"({"sessions":[{"job":7,"hung":{"ranks":[-1],"step":1,"text":""}}]})",
                              R"({"sessions":[{"job":8,"hung":{"ranks":[1],"step":1,"text":""}}]})"})
        CHECK_FALSE(hang_in_status(other, 7));
}

}  // namespace test_decision
