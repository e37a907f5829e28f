// SPDX-License-Identifier: BSD-3-Clause
//
// What a job's own programs tell of it: one incident a job, which accuses its node by repetition alone, and
// is none where another fault explains it.
#include <csignal>

#include <catch2/catch.hpp>

#include "fault/agent/job_watch.hpp"
#include "fault/incident/engine.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/unit/fault/lines.hpp"

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using kind = job_news::kind;

namespace {

constexpr std::int64_t begun = 1'000'000;
constexpr int code_1 = 1 << 8;

class bench {
  public:
    engine e;
    policy rules = shipped_policy();

    engine::outcome hear(const job_news& news, const std::string& node, std::int64_t at) {
        event out;
        out.fault = fault_of(news);
        out.text = words_of(news);
        out.node = node;
        out.boot_id = "boot";
        out.stream = "look";
        out.position = ++position_;
        out.line_ms = at;
        out.job = news.job;
        return e.absorb(out, at);
    }
    engine::outcome task(std::uint32_t job, std::uint32_t rank, int status, std::int64_t at,
                         const std::string& node = "n03", std::uint32_t step = 0) {
        return hear({kind::task_ended, job, step, rank, status, 0, {}}, node, at);
    }
    engine::outcome damage(kind what, std::uint32_t job, std::int64_t at, const std::string& node = "n03") {
        return hear({what, job, 0, 1, 0, 0, "chunk 3"}, node, at);
    }
    engine::outcome line(const std::string& text, std::int64_t at, std::uint32_t job = 0) {
        auto out = event_of(text, at, ++position_);
        out.job = job;
        return e.absorb(out, at);
    }
    const incident& one() const {
        REQUIRE(e.all().size() == 1);
        return e.all().begin()->second;
    }
    decision about(std::uint64_t number) { return rules.decide(*e.find(number), e.all()); }

  private:
    std::uint64_t position_ = 0;
};

}  // namespace

TEST_CASE("however often a job fails, it is one incident, which is noted", "[fault]") {
    bench b;
    // Ten thousand tasks on a thousand nodes, and then again and again.
    for (std::uint32_t n = 0; n < 1000; ++n) b.task(17, n, code_1, begun + n, "n" + std::to_string(n));
    for (std::uint32_t step = 1; step < 50; ++step) b.task(17, 0, code_1, begun + step * 600'000, "n7", step);
    const auto& i = b.one();
    CHECK(i.reason == "job-failed");
    CHECK(i.object.node == "n0");
    CHECK(i.cause == "a task of the job failed: step 17.0, rank 0: exit code 1, job 17");
    CHECK(i.jobs == std::vector<std::uint64_t>{17});
    CHECK(i.lines == 1049);
    CHECK(i.evidence.size() == incident::max_evidence);
    CHECK(b.about(i.number).step == step_kind::none);
    // Another job's is another's.
    CHECK(b.task(18, 0, code_1, begun).created);
}

TEST_CASE("ordinary failures of many jobs say nothing of the node, crashes do", "[fault]") {
    bench b;
    for (std::uint32_t job = 1; job <= 20; ++job) {
        const auto out = b.task(job, 0, job % 2 == 0 ? code_1 : SIGABRT, begun + job * 60'000);
        CHECK(out.created);
        CHECK(b.about(out.number).step == step_kind::none);
    }
    const auto crash = [&](std::uint32_t job, const std::string& node, std::int64_t at) {
        return b.about(b.task(job, 0, SIGBUS, begun + at, node).number);
    };
    // The same job three times is the job's.
    for (int n = 0; n < 3; ++n) CHECK(crash(101, "n03", 2'000'000 + n * 60'000).step == step_kind::none);
    CHECK(crash(102, "n03", 3'000'000).step == step_kind::none);
    CHECK(crash(103, "n04", 3'000'000).step == step_kind::none);  // on another node
    const auto asked = crash(104, "n03", 4'000'000);
    CHECK(asked.step == step_kind::alert);
    CHECK(asked.rule == "crashes-again");
}

TEST_CASE("a crash weighs more than the codes that came before it", "[fault]") {
    bench b;
    b.task(17, 0, code_1, begun, "n03");
    const auto out = b.task(17, 9, SIGSEGV, begun + 100, "n04");
    CHECK(out.escalated);
    CHECK(b.one().object.node == "n04");
    CHECK(b.one().symptom == "job-crashed");
    CHECK(b.one().jobs == std::vector<std::uint64_t>{17});
    b.task(17, 1, code_1, begun + 200, "n03");
    CHECK(b.one().object.node == "n04");
}

TEST_CASE("a task that dies of a lost GPU is no fault of its own", "[fault]") {
    bench b;
    SECTION("the kernel's line comes first") {
        b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun);
        b.task(17, 3, SIGABRT, begun + 200);
        // Its peers on other nodes: once it is known whose the GPU was.
        b.e.find(1)->jobs = {17};
        b.task(17, 12, SIGABRT, begun + 900, "n07");
        b.task(17, 13, SIGSEGV, begun + 950, "n07");
        CHECK(b.one().lines == 4);
    }
    SECTION("or a moment later") {
        b.task(17, 3, SIGABRT, begun);
        CHECK(b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun + 200).escalated);
    }
    CHECK(b.one().reason == "gpu-xid-79");
    CHECK(b.one().xid == 79u);
    CHECK(b.one().object.kind == object_kind::gpu);
    // Of another job, or long after, it is another fault.
    b.e.find(1)->jobs = {17};
    CHECK(b.task(18, 0, code_1, begun + 1'000).created);
    CHECK(b.task(17, 0, code_1, begun + 3'600'000).created);
}

TEST_CASE("what another node's line tells does not excuse a job", "[fault]") {
    bench b;
    b.task(17, 3, SIGABRT, begun, "n04");
    CHECK(b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun + 200).created);
    CHECK(b.e.all().size() == 2);
}

TEST_CASE("a job that fails takes no line from the fault that the line is of", "[fault]") {
    bench b;
    const auto lost = [&](std::int64_t at) {
        return b.line(gpu_line(3, "79, GPU has fallen off the bus."), at);
    };
    lost(begun);
    auto& first = *b.e.find(1);
    first.jobs = {16};
    SECTION("which somebody wants left alone") { first.cancelled_by = "root"; }
    SECTION("whose node is out") { first.node_out_ms = begun; }
    SECTION("which goes on") {}
    SECTION("which somebody has seen to since it was written") { first.closed_ms = begun + 3'600'010; }
    const auto note = b.task(17, 3, code_1, begun + 3'600'000);
    CHECK(note.created);
    if (first.closed_ms != 0) {
        auto late = event_of(gpu_line(3, "79, GPU has fallen off the bus."), begun + 3'600'001, 4711);
        late.written_ms = late.line_ms;
        CHECK(b.e.absorb(late, late.line_ms).past);
    } else {
        CHECK(lost(begun + 3'600'100).number == 1);
    }
    CHECK(b.e.all().size() == 2);
    CHECK(b.e.find(note.number)->reason == "job-failed");
}

TEST_CASE("a task that ends after the kernel ended another for memory is the same incident", "[fault]") {
    bench b;
    b.line(
        "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB, anon-rss:1kB, "
        "file-rss:1kB, shmem-rss:0kB, UID:1000 pgtables:1kB oom_score_adj:0",
        begun);
    CHECK(b.one().reason == "job-memory");
    b.task(17, 3, code_1, begun + 200);
    CHECK(b.one().reason == "job-memory");
    CHECK(b.one().lines == 2);
}

TEST_CASE("that banyan-run gave a job up stands in the job's incident, whatever else does", "[fault]") {
    bench b;
    for (std::uint32_t n = 0; n < 200; ++n) b.task(17, n, code_1, begun + n);
    job_news last{kind::given_up, 17, 4, 0, 0, 0, "step 17.4 ended with code 1 after 3 restarts"};
    b.hear(last, "n01", begun + 600'000);
    const auto& i = b.one();
    CHECK(i.evidence.back().text == "job 17: banyan-run says: step 17.4 ended with code 1 after 3 restarts");
    CHECK(b.about(i.number).step == step_kind::none);
    // By itself, too; and the user's words are evidence alone.
    last.job = 18;
    const auto alone = b.hear(last, "n01", begun + 700'000);
    CHECK(alone.created);
    CHECK(b.e.find(alone.number)->cause.find("17.4") == std::string::npos);
}

TEST_CASE("damaged copies accuse the job, and the node's memory by repetition", "[fault]") {
    bench b;
    for (const auto what : {kind::copy_damaged, kind::sent_damaged}) {
        const auto out = b.damage(what, 17, begun);
        CHECK(b.about(out.number).step == step_kind::none);
        CHECK(b.e.find(out.number)->reason == "checkpoint-damaged");
    }
    CHECK(b.e.all().size() == 1);
    // One that has all his copies damaged, everywhere, is one job.
    for (int n = 0; n < 100; ++n) b.damage(kind::copy_damaged, 17, begun + n, "n" + std::to_string(n));
    CHECK(b.e.all().size() == 1);
    CHECK(b.about(b.damage(kind::copy_damaged, 18, begun + 1).number).step == step_kind::none);
    const auto third = b.about(b.damage(kind::sent_damaged, 19, begun + 2).number);
    CHECK(third.step == step_kind::alert);
    CHECK(third.rule == "damage-again");
    // A file is no word on the node's memory.
    CHECK(b.about(b.damage(kind::stored_damaged, 20, begun + 3).number).step == step_kind::none);
    CHECK(b.damage(kind::stored_damaged, 17, begun + 4).created);
}

TEST_CASE("failing jobs do not push other incidents out of memory", "[fault]") {
    bench b;
    b.line(gpu_line(3, "63, Row Remapper"), begun);
    b.e.find(1)->state = incident_state::done;
    for (std::uint32_t job = 2; job < 5'000; ++job) {
        const auto out = b.task(job, 0, code_1, begun + job * 60'000);
        b.e.find(out.number)->state = incident_state::done;
    }
    CHECK(b.e.all().size() <= 2000);
    CHECK(b.e.find(1));
}
