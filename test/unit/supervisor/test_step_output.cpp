// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/step_output.hpp"

namespace test_step_output {

using namespace banyan::supervisor;
using banyan::clock;
using std::chrono::seconds;

namespace {

/// What `text` tells, all of it written at once.
failure told_by(std::string_view text, bool launchers = false) {
    step_output out(launchers);
    out.take(text, {});
    return out.end();
}

const std::string name_error =
    "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nNameError: name 'x' is not "
    "defined\n";
const std::string exited = "srun: error: n01: task 1: Exited with exit code 1\n";
const std::string others =
    "srun: launch/slurm: _step_signal: Terminating StepId=1.0\n"
    "slurmstepd-n01: error: *** STEP 1.0 ON n01 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    "srun: error: n02: tasks 2-3: Terminated\nsrun: error: n01: task 0: Killed\n";
const std::string closed = "RuntimeError: [gloo/pair.cc:534] Connection closed by peer [127.0.0.1]:1\n";
const std::string summary =
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "t.py FAILED\nRoot Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 1)\n";

struct row {
    const char* what;
    std::string output;
    const char* kind;  ///< empty: not the program's own
};

const row rows[] = {
    {"nothing", "", ""},
    {"a typo in one rank", name_error + exited + others, "NameError"},
    {"the end of its task overtakes it", exited + name_error + others, "NameError"},
    {"no line end, and none at the end", "loss 1.2" + exited + "NameError: x", "NameError"},
    {"a progress bar", "\r 1%|\r 2%|#\rNameError: name 'x'\r\n" + exited, "NameError"},
    {"zeros in it", std::string("\0\0\n", 3) + name_error + std::string("\0\n", 2) + exited, "NameError"},
    {"labels of srun", "1: Traceback\n1: NameError: x\n" + exited, "NameError"},
    {"labels of srun, made wide", " 1: NameError: x\n" + exited, "NameError"},
    {"labels of torchrun", "[default0]:NameError: x\n" + exited, "NameError"},
    {"labels of torchrun, and of torch", "[default0]:[rank0]: NameError: x\n" + exited, "NameError"},
    {"no exception of Python", "Segmentation fault\n" + exited, ""},
    {"no end of a task", name_error, ""},
    {"the first task was killed", "srun: error: n01: task 1: Killed\n" + name_error + exited, ""},
    {"it crashed", name_error + "srun: error: n01: task 1: Segmentation fault (core dumped)\n", ""},
    {"Slurm ended the step", name_error + others + exited, ""},
    {"a node failed", name_error + "srun: error: Node failure on n02\n" + exited, ""},
    {"the peers of a typo", "[rank1]: NameError: x\n[rank0]: " + closed + exited, "NameError"},
    {"one that was handled, and a lost peer", name_error + closed + exited, ""},
    {"one that was handled, and an assertion on a lost peer",
     name_error + "AssertionError: step failed: " + closed + exited, ""},
    {"one that was handled, and a code of the program's choice",
     name_error + "srun: error: n01: task 1: Exited with exit code 3\n", ""},
    {"one that was handled, and a shell's code for SIGKILL",
     name_error + "srun: error: n01: task 1: Exited with exit code 137\n", ""},
    {"one in the writing of a log", "--- Logging error ---\nTypeError: x\n" + exited, ""},
    {"one at the end of an object", "Exception ignored in: <function f>\nAssertionError: x\n" + exited, ""},
    {"an illegal address", "RuntimeError: Triton Error [CUDA]: an illegal memory access\n" + exited, ""},
    {"the peers of something else", closed + name_error + exited, ""},
    {"the peers alone", closed + exited, ""},
    {"one that was handled, and the peers of a lost rank",
     name_error + "[rank2]: " + closed + "[rank3]: " + closed + exited, ""},
    {"one that was handled, and a typo", "ImportError: x\n[rank2]: NameError: x\n[rank3]: " + closed + exited,
     "NameError"},
    {"one that was handled, and a GPU",
     name_error + "RuntimeError: CUDA error: misaligned address\n" + exited, ""},
    {"out of the cgroup's memory", "srun: error: n01: task 1: Out Of Memory\n" + closed, "Out Of Memory"},
    {"out of a GPU's memory", "torch.OutOfMemoryError: CUDA out of memory. Tried\n" + exited,
     "torch.OutOfMemoryError"},
    {"raised from another",
     "KeyError: 1\n\nThe above exception was the direct cause of it:\n\nValueError: x\n" + exited,
     "ValueError"},
    {"raised while a peer was lost",
     closed + "\nDuring handling of the above exception, another exception occurred:\n\nNameError: x\n" +
         exited,
     ""},
    {"a peer was lost while one was handled",
     "NameError: x\n\nDuring handling of the above exception, another exception occurred:\n\n" + closed +
         exited,
     ""},
    {"torchrun, a typo", name_error + summary + "  exitcode  : 1 (pid: 7)\n" + exited, "NameError"},
    {"aborted at the end of Python",
     "[rank1]: ValueError: x\nterminate called\nsrun: error: n01: task 1: Aborted (core dumped)\n",
     "ValueError"},
    {"aborted, and it had handled one", name_error + "srun: error: n01: task 1: Aborted\n", ""},
    {"torchrun, a worker aborted at the end of Python",
     "[rank1]: ValueError: x\n" + summary + "  exitcode  : -6 (pid: 7)\n" + exited, "ValueError"},
    {"torchrun, a worker aborted", name_error + summary + "  exitcode  : -6 (pid: 7)\n" + exited, ""},
    {"torchrun, a worker that was ended with it",
     name_error + summary + "  exitcode  : -15 (pid: 7)\n  exitcode  : 1 (pid: 8)\n" + exited, "NameError"},
    {"torchrun, a worker was killed", name_error + summary + "  exitcode  : -9 (pid: 7)\n" + exited, ""},
    {"torchrun's words, cut", name_error + "exitcode\n  exitcode  :\n" + exited, "NameError"},
    {"torchrun, alone", summary + "  exitcode  : 1 (pid: 7)\n" + exited, ""},
    {"the name in a sentence",
     "the NameError: x\n  NameError: x\nNameErrors: x\nname_error: x\nError\n" + closed + exited, ""},
    {"a warning", "t.py:1: UserWarning: x\n" + exited, ""},
    {"srun's words, cut",
     name_error + "srun: error: n01: task\nsrun: error: : task 1: \nsrun: error: n01: tasks a: x\n", ""},
    {"srun's other errors", name_error + "srun: error: Unable to create step for job 1\n", ""},
    {"a code that is no number", name_error + "srun: error: n01: task 1: Exited with exit code x\n", ""},
};

}  // namespace

TEST_CASE("whether the program ended itself, by its output", "[supervisor]") {
    for (const auto& r : rows) {
        const auto f = told_by(r.output);
        INFO(r.what << ": " << f.words);
        CHECK(f.kind == r.kind);
        CHECK(f.own == !f.kind.empty());
        CHECK(f.words.empty() == f.kind.empty());
        // Byte by byte, as a reader that is quick may see it.
        step_output slow(false);
        for (const char& c : r.output) slow.take({&c, 1}, {});
        CHECK(slow.end().words == f.words);
    }
}

TEST_CASE("who was the first, where, and with what", "[supervisor]") {
    CHECK(told_by(name_error + exited).words ==
          "rank 1 on n01 was the first, with exit code 1; the first error was NameError: name 'x' is not "
          "defined");
    CHECK(told_by("[rank3]: AssertionError\n" + exited).words ==
          "rank 1 on n01 was the first, with exit code 1; the first error, of rank 3, was AssertionError");
    CHECK(told_by("srun: error: n[01-02]: tasks 0,2-3: Out Of Memory\n").words ==
          "ranks 0,2-3 on n[01-02] were the first, out of memory");
    CHECK(told_by(name_error + exited, true).words.starts_with("task 1 on n01 was the first, "));
    CHECK(told_by("[rank1]: ValueError: x\nsrun: error: n01: task 1: Aborted\n").words ==
          "rank 1 on n01 was the first, by SIGABRT; the first error, of rank 1, was ValueError: x");
    CHECK(told_by(name_error + exited).of_code);
    CHECK_FALSE(told_by("ValueError\n" + exited).of_code);
}

TEST_CASE("what is told stays short", "[supervisor]") {
    const std::string long_text(100'000, 'x'), tasks = "0" + long_text;
    const auto f =
        told_by("NameError: " + long_text + "\nsrun: error: n01: task 1: Exited with exit code 1\n");
    CHECK(f.own);
    CHECK(f.words.size() < 500);
    CHECK(told_by(long_text + "Error: x\n" + exited).kind.empty());
    CHECK(told_by("NameError: x\nsrun: error: " + long_text + ": task 1: Exited with exit code 1\n")
              .words.size() < 500);
    // Both ends of a line count that is longer than what is kept of it.
    step_output out(false);
    out.take("NameError: x", {});
    for (int i = 0; i < 100; ++i) out.take(long_text, {});
    out.take(exited, {});
    CHECK(out.end().kind == "NameError");
}

TEST_CASE("an exception counts that is near the end of the first task", "[supervisor]") {
    const clock::time_point start{};
    const auto at = [&](int first, int raised, int ended) {
        step_output out(false);
        out.take("NameError: handled\n", start + seconds(first));
        out.take("ValueError: x\n", start + seconds(raised));
        out.take(exited, start + seconds(ended));
        out.take(closed, start + seconds(ended + 60));
        return out.end().kind;
    };
    CHECK(at(0, 100, 101) == "ValueError");
    CHECK(at(0, 1, 100).empty());
    CHECK(at(99, 100, 101) == "NameError");
    step_output late(false);
    late.take(exited, start);
    late.take(name_error, start + seconds(60));
    CHECK_FALSE(late.end().own);
}

TEST_CASE("two thousand ranks", "[supervisor]") {
    step_output out(false);
    for (int rank = 0; rank < 2000; ++rank)
        out.take("[rank" + std::to_string(rank) + "]: ValueError: x\n", {});
    for (int i = 0; i < 10'000; ++i) out.take("KeyError: x\n", {});
    for (int rank = 0; rank < 2000; rank += 2)
        out.take("srun: error: n" + std::to_string(rank) + ": tasks " + std::to_string(rank) + "-" +
                     std::to_string(rank + 1) + ": Exited with exit code 1\n",
                 {});
    CHECK(out.end().words ==
          "ranks 0-1 on n0 were the first, with exit code 1; the first error, of rank 0, was ValueError: x");
}

}  // namespace test_step_output
