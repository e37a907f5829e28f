// SPDX-License-Identifier: BSD-3-Clause
//
// What a job's own programs tell of it: one incident a job, which accuses its node by repetition alone, and
// is none where another fault explains it.
#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/agent/job_watch.hpp"
#include "fault/incident/engine.hpp"
#include "fault/policy/policy_file.hpp"
#include "fault/policy/review.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_job_incidents {

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

TEST_CASE("a crash accuses its node where it was the first end of its step", "[fault]") {
    bench b;
    SECTION("in a later step than the codes") {
        b.task(17, 0, code_1, begun, "n03");
        const auto out = b.task(17, 9, SIGSEGV, begun + 100'000, "n04", 1);
        CHECK(out.escalated);
        CHECK(b.one().object.node == "n04");
        CHECK(b.one().symptom == "job-crashed");
        CHECK(b.one().jobs == std::vector<std::uint64_t>{17});
        b.task(17, 1, code_1, begun + 100'200, "n03", 1);
        CHECK(b.one().object.node == "n04");
    }
    SECTION("not where its step had failed before") {
        b.task(17, 0, code_1, begun, "n03");
        CHECK_FALSE(b.task(17, 9, SIGSEGV, begun + 100, "n04").escalated);
        CHECK(b.one().object.node == "n03");
        CHECK(b.one().symptom == "job-failed");
        CHECK(b.one().lines == 2);
    }
    SECTION("by the time of its line, not of its arrival") {
        b.task(17, 9, SIGSEGV, begun + 100, "n04");
        CHECK(b.one().symptom == "job-crashed");
        b.task(17, 0, code_1, begun, "n03");
        CHECK(b.one().object.node == "n03");
        CHECK(b.one().symptom == "job-failed");
        CHECK(b.task(17, 3, SIGBUS, begun - 100, "n05").escalated);
        CHECK(b.one().object.node == "n05");
    }
    SECTION("in each run of a job that goes back into the queue") {
        b.task(17, 0, code_1, begun, "n03");
        CHECK(b.task(17, 9, SIGSEGV, begun + 7'200'000, "n04").escalated);
    }
}

TEST_CASE("a job's crashes count where and when each was", "[fault]") {
    bench b;
    const auto day = 24 * 3'600'000;
    // Three jobs crash on n04 today, two of which crashed elsewhere yesterday.
    b.task(1, 0, SIGBUS, begun, "n03");
    b.task(2, 0, SIGBUS, begun, "n05");
    const auto today = begun + day + 3'600'000;
    CHECK(b.about(b.task(1, 0, SIGBUS, today, "n04", 1).number).step == step_kind::none);
    CHECK(b.about(b.task(2, 0, SIGBUS, today, "n04", 1).number).step == step_kind::none);
    // Of n03 and n05 that says nothing.
    CHECK(b.about(b.task(5, 0, SIGBUS, today, "n03").number).step == step_kind::none);
    CHECK(b.about(b.task(6, 0, SIGBUS, today, "n03").number).step == step_kind::none);
    const auto third = b.task(3, 0, SIGBUS, today + 1, "n04").number;
    CHECK(b.about(third).rule == "crashes-again");
    CHECK(b.e.find(third)->object.node == "n04");
    // What a third job did long after accuses nobody.
    CHECK(b.about(b.task(4, 0, SIGBUS, today + 2 * day, "n04").number).step == step_kind::none);
}

TEST_CASE("what is told of a job is closed after a day of quiet, and counts still", "[fault]") {
    bench b;
    const auto quiet = begun + 25 * 3'600'000;
    b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun, 99);
    b.task(17, 0, SIGBUS, begun + 60'000);
    for (const auto number : {1, 2}) b.e.find(number)->state = incident_state::done;
    CHECK(b.e.close_quiet(begun + 3'600'000).empty());
    CHECK(b.e.close_quiet(quiet) == std::vector<std::uint64_t>{2});
    CHECK(b.e.find(2)->closed_ms == quiet);
    CHECK(b.e.close_quiet(quiet).empty());
    CHECK(b.e.find(1)->closed_ms == 0);
    // Its number belongs to another job now.
    const auto next = b.task(17, 0, code_1, quiet + 1);
    CHECK(next.created);
    // A site's rule may look further back than a day.
    auto read = parse_policy("site",
                             "[[rule]]\nname = \"week\"\nsymptom = \"job-crashed\"\njobs = 2\n"
                             "within = \"168h\"\naction = \"alert\"\n"
                             "[[rule]]\nname = \"rest\"\naction = \"log\"\n");
    REQUIRE(read.rules);
    b.rules = *read.rules;
    CHECK(b.about(b.task(18, 0, SIGBUS, quiet + 2).number).rule == "week");
    // What waits is not closed.
    b.e.find(next.number)->state = incident_state::held;
    const auto closed = b.e.close_quiet(quiet + 48 * 3'600'000);
    CHECK(std::ranges::find(closed, next.number) == closed.end());
}

TEST_CASE("where a job was hit goes on over a restart of the controller", "[fault]") {
    bench b;
    b.task(17, 9, SIGSEGV, begun, "n04", 3);
    const auto& i = b.one();
    REQUIRE(i.firsts.size() == 1);
    const auto back = incident_from(to_json(i));
    REQUIRE(back);
    CHECK(back->firsts == i.firsts);
    auto e = event_of(gpu_line(3, "79, GPU has fallen off the bus."));
    e.fault = fault_of({kind::task_ended, 17, 3, 9, SIGSEGV, 0, {}});
    const auto sent = event_from(nlohmann::json::parse(to_json(e).dump()));
    REQUIRE(sent);
    CHECK(sent->fault.step == 3u);
}

TEST_CASE("no rule takes a node out for what a job's programs tell", "[fault]") {
    const auto problems = [](const std::string& rule) {
        std::string out;
        for (const auto& p : parse_policy("p", "[[rule]]\nname = \"strict\"\n" + rule).problems)
            out += p.text("p");
        return out;
    };
    for (const std::string what : {"reason = \"job-failed\"", "reason = [\"pcie\", \"checkpoint-damaged\"]",
                                   "symptom = \"job-crashed\"", "symptom = [\"copy-damaged\", \"panic\"]"})
        for (const std::string action : {"drain", "down"})
            CHECK(problems(what + "\njobs = 3\nwithin = \"24h\"\naction = \"" + action + "\"\n")
                      .find("no node is taken out for what a job's programs tell of it") !=
                  std::string::npos);
    CHECK(problems("symptom = \"job-crashed\"\nswept = \"unfit\"\naction = \"drain\"\n").empty());
    CHECK(problems("symptom = \"job-crashed\"\naction = \"sweep\"\n").empty());
    CHECK(problems("reason = \"gpu-app\"\naction = \"drain\"\n").empty());
    const auto read = parse_policy("p", "[[rule]]\nname = \"all\"\naction = \"down\"\n");
    REQUIRE(read.rules);
    const auto warnings = review(*read.rules).warnings;
    CHECK(std::ranges::any_of(warnings, [](const policy_problem& w) {
        return w.what.find("it is also for what a job's programs tell of it (") != std::string::npos;
    }));
}

TEST_CASE("a user whose tasks fail all the time keeps no other fault near", "[fault]") {
    bench b;
    b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun);
    for (std::int64_t at = 20'000; at <= 200'000; at += 20'000) b.task(17, 0, code_1, begun + at);
    CHECK(b.e.find(1)->last_ms == begun);
    CHECK(b.e.find(1)->lines == 2);  // the first of them may follow from it
    CHECK(b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun + 210'000).escalated);
}

TEST_CASE("ends that were told before it was known whose the GPU is are folded into its incident",
          "[fault]") {
    bench b;
    b.line(gpu_line(3, "79, GPU has fallen off the bus."), begun);
    const auto peer = b.task(17, 12, SIGABRT, begun + 900, "n07").number;
    const auto other = b.task(18, 0, code_1, begun + 900, "n07").number;
    const auto late = b.task(19, 0, code_1, begun + 900'000, "n07").number;
    for (const auto number : {peer, other, late}) b.e.find(number)->state = incident_state::done;
    b.e.find(1)->jobs = {17, 19};
    CHECK(b.e.fold_ends(1) == std::vector{peer});
    CHECK(b.e.find(peer)->closed_by == "incident f00001");
    CHECK(b.e.find(1)->lines == 2);
    CHECK(b.e.fold_ends(1).empty());
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
    CHECK(b.e.all().size() <= engine::max_told + 1);
    CHECK(b.e.find(1));
}

TEST_CASE("jobs that fail push out each other alone, the one least heard of first", "[fault]") {
    bench b;
    // Memory is full of alerts that are open, and one job fails from the beginning on.
    const auto alert = [&](std::uint32_t n) {
        auto e = event_of(gpu_line(3, "122, SPI PMU RPC read failure"), begun, n, "n" + std::to_string(n));
        const auto number = b.e.absorb(e, begun).number;
        b.e.find(number)->state = incident_state::done;
    };
    alert(1'000'000);
    const auto failing = b.task(1, 0, SIGBUS, begun).number;
    b.e.find(failing)->state = incident_state::done;
    for (std::uint32_t n = 1; n < engine::max_kept; ++n) alert(1'000'000 + n);
    for (std::uint32_t job = 2; job < 2'000; ++job) {
        const auto out = b.task(job, 0, job % 2 == 0 ? SIGBUS : code_1, begun + job * 1'000);
        b.e.find(out.number)->state = incident_state::done;
        CHECK_FALSE(b.task(1, 0, code_1, begun + job * 1'000 + 1).created);
    }
    CHECK(b.e.find(1));
    CHECK(b.e.find(failing));
    CHECK(b.e.all().size() == engine::max_kept + engine::max_told);
    // What is closed goes before what is open, however old.
    b.e.find(500)->closed_ms = begun;
    alert(2'000'000);
    CHECK(b.e.find(1));
    CHECK_FALSE(b.e.find(500));
}

}  // namespace test_job_incidents
