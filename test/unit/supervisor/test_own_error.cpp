// SPDX-License-Identifier: BSD-3-Clause
//
// What follows from a step that the program ended by an error of its own.
#include <catch2/catch.hpp>

#include "supervisor/decision.hpp"

namespace test_own_error {

using namespace banyan::supervisor;

namespace {

/// One that comes before any training step, in a job with a plan of two nodes and one spare.
situation error(std::string kind, bool of_code) {
    situation s;
    s.end = {143, false, std::chrono::minutes{1}};
    s.nodes_before = s.now.nodes = {"n01", "n02", "n03"};
    s.nodes_needed = s.nodes_of_all = 2;
    s.planned = true;
    s.max_restarts = 10;
    s.max_idle_restarts = 3;
    s.told = {true, of_code, std::move(kind), "rank 1 on n01 was the first"};
    return s;
}

situation typo() { return error("NameError", true); }
situation no_file() { return error("FileNotFoundError", false); }

struct row {
    const char* what;
    situation (*begin)();
    void (*change)(situation&);
    action expected;
    std::uint32_t idle;
};

const row rows[] = {
    {"the program's text is wrong", typo, [](situation&) {}, action::finish, 0},
    {"and it trained before", typo, [](situation& s) { s.saved_before = s.saved_after = 4; }, action::restart,
     1},
    {"and it trained before, and was the same the last time", typo,
     [](situation& s) {
         s.saved_before = s.saved_after = 4;
         s.kind_before = "NameError";
     },
     action::finish, 0},
    {"it brought a training step first", typo, [](situation& s) { s.saved_after = 1; }, action::restart, 0},
    {"a node was lost", typo,
     [](situation& s) {
         s.now.nodes = {"n01", "n03"};
     },
     action::restart, 0},
    {"the step ran on a node that had left", typo, [](situation& s) { s.left = true; }, action::restart, 0},
    {"on fewer nodes than it asked for", typo, [](situation& s) { s.nodes_of_all = 4; }, action::restart, 1},
    {"the job was requeued, and may have trained", typo, [](situation& s) { s.requeued = true; },
     action::restart, 1},
    {"nobody knows whose error it was", typo, [](situation& s) { s.told = {}; }, action::restart, 1},
    {"slurmctld does not answer", typo, [](situation& s) { s.now.known = false; }, action::wait, 0},
    {"after the last restart", typo, [](situation& s) { s.restarts = 10; }, action::finish, 0},
    {"an error that may pass", no_file, [](situation&) {}, action::restart, 1},
    {"it came again", no_file, [](situation& s) { s.kind_before = "FileNotFoundError"; }, action::finish, 0},
    {"another one came before", no_file, [](situation& s) { s.kind_before = "ValueError"; }, action::restart,
     1},
    {"it came again, after a training step", no_file,
     [](situation& s) {
         s.saved_after = 1;
         s.kind_before = "FileNotFoundError";
     },
     action::restart, 0},
    {"it came again, and a node was lost", no_file,
     [](situation& s) {
         s.now.nodes = {"n01", "n03"};
         s.kind_before = "FileNotFoundError";
     },
     action::restart, 0},
};

}  // namespace

TEST_CASE("what follows from an error of the program's own", "[supervisor]") {
    for (const auto& r : rows) {
        auto s = r.begin();
        r.change(s);
        const auto d = decide(s);
        INFO(r.what << ": " << d.why);
        CHECK(d.what == r.expected);
        if (d.what == action::restart) CHECK(d.idle_restarts == r.idle);
    }
}

TEST_CASE("it is told in words, and remembered for the next step", "[supervisor]") {
    auto s = no_file();
    CHECK(decide(s).kind == "FileNotFoundError");
    s.kind_before = decide(s).kind;
    CHECK(decide(s).why == "the program ended itself twice in the same way: rank 1 on n01 was the first");
    CHECK(decide(s).kind == "FileNotFoundError");
    s.saved_after = 1;
    CHECK(decide(s).kind.empty());
    s = typo();
    CHECK(decide(s).why == "the program ended itself: rank 1 on n01 was the first");
    s.end.cancelled = true;
    CHECK(decide(s).kind.empty());
    CHECK(decide(s).why == "it was cancelled by a signal");
    s = typo();
    s.now.nodes = {"n01", "n03"};
    CHECK(decide(s).kind.empty());
}

}  // namespace test_own_error
