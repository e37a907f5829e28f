// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep/apart.hpp"
#include "sweep/run.hpp"

namespace test_run {

using namespace banyan;
using namespace banyan::sweep;
using steady = banyan::clock;

namespace {

constexpr auto generous = std::chrono::seconds(60);

deadline in_good_time() { return steady::now() + generous; }

/// A file system whose server is gone.
nlohmann::json hang() {
    for (;;) ::pause();
}

std::vector<judged_look> well(const place&) {
    return {[] { return fit("well"); }};
}
std::vector<judged_look> mixed(const place&) {
    return {[] { return fit("well"); }, [] { return unfit("broken"); }, [] { return fit("well too"); }};
}
std::vector<judged_look> hanging(const place&) {
    return {[] { return fit("well"); },
            []() -> finding {
                hang();
                return {};
            }};
}

constexpr auto yes = [](const settings&) { return true; };

sweep_options options(std::vector<check> checks) {
    sweep_options o;
    o.checks = std::move(checks);
    o.looking = o.measuring = generous;
    return o;
}

const ask_busy idle = [] { return false; };
const ask_busy busy = [] { return true; };
const ask_busy silent = []() -> result<bool> { return fail(errc::unavailable, "slurmctld is away"); };
const ask_busy never_asked = []() -> result<bool> { throw std::logic_error("nobody should ask"); };

}  // namespace

TEST_CASE("answers come back in the order of the looks", "[sweep]") {
    std::vector<look> looks;
    for (int i = 0; i < 300; ++i) looks.emplace_back([i] { return nlohmann::json(i); });
    const auto answers = look_apart(looks, in_good_time());
    REQUIRE(answers.size() == 300);
    for (int i = 0; i < 300; ++i) CHECK(answers[static_cast<std::size_t>(i)] == nlohmann::json(i));
}

TEST_CASE("a look that hangs is left behind, the others are heard", "[sweep]") {
    const auto answers =
        look_apart({[] { return nlohmann::json("here"); }, hang}, steady::now() + std::chrono::seconds(2));
    CHECK(answers[0].value() == "here");
    REQUIRE(!answers[1]);
    CHECK(answers[1].error().what.starts_with("no answer within "));
    // Killed: nothing of it stays behind.
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    CHECK(errno == ECHILD);
}

TEST_CASE("a look that stops, crashes, exits, throws or babbles is an error that says so", "[sweep]") {
    const auto error_of = [](const look& work, steady::duration time = generous) {
        return look_apart(work, steady::now() + time).error().what;
    };
    CHECK(error_of([]() -> nlohmann::json { ::raise(SIGSTOP), std::abort(); }, std::chrono::milliseconds(200))
              .starts_with("no answer"));
    CHECK(error_of([]() -> nlohmann::json { ::raise(SIGKILL), std::abort(); }).find("signal 9") !=
          std::string::npos);
    CHECK(error_of([]() -> nlohmann::json { std::_Exit(7); }).find("code 7") != std::string::npos);
    CHECK(error_of([]() -> nlohmann::json { throw std::runtime_error("a test's"); }).find("code 1") !=
          std::string::npos);
    CHECK(error_of([] { return nlohmann::json(std::string(5u << 20, 'x')); }).find("larger") !=
          std::string::npos);
    CHECK(look_apart([] { return nlohmann::json("\xff\xfe"); }, in_good_time()));
}

TEST_CASE("what a look prints before it ends is its reason, and not ours to print", "[sweep]") {
    const auto told = look_apart(
        []() -> nlohmann::json {
            std::puts("first");
            std::fputs("fatal: no slurm.conf\n", stderr);
            std::exit(1);  // as libslurm does
        },
        in_good_time());
    REQUIRE(!told);
    CHECK(told.error().what.find("code 1 and no answer") != std::string::npos);
    CHECK((told.error().what.ends_with(": first") || told.error().what.ends_with("no slurm.conf")));
}

TEST_CASE("a look holds nothing of ours open", "[sweep]") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);  // as a parent leaves it to us: without close-on-exec
    const auto open = [] {
        nlohmann::json all = nlohmann::json::array();
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
            all.push_back(std::filesystem::read_symlink(entry.path()).string());
        return all;
    };
    const auto theirs = look_apart(open, in_good_time()).value();
    std::size_t pipes = 0;
    for (const auto& one : theirs)
        if (one.get<std::string>().starts_with("pipe:")) ++pipes;
    std::error_code closed;
    const auto in = std::filesystem::read_symlink("/proc/self/fd/0", closed).string();
    CHECK(pipes == (in.starts_with("pipe:") ? 2 : 1));  // its answer's, and standard input
    ::close(ends[0]), ::close(ends[1]);
}

TEST_CASE("the worst of a check's looks is the check's, and stands first", "[sweep]") {
    const auto r = sweep_node(
        options({{"mixed", false, false, yes, mixed}, {"well", false, false, yes, well}}), never_asked);
    REQUIRE(r.size() == 2);
    CHECK(r[0].found.is == verdict::unfit);
    CHECK(r[0].found.what == std::vector<std::string>{"broken", "well", "well too"});
    CHECK(r[1].found.is == verdict::fit);
    CHECK(exit_code(r) == 1);
}

TEST_CASE("one hung look does not hide the others", "[sweep]") {
    auto o = options({{"hangs", false, false, yes, hanging}, {"well", false, false, yes, well}});
    o.looking = std::chrono::seconds(2);
    const auto r = sweep_node(o, never_asked);
    CHECK(r[0].found.is == verdict::unknown);
    CHECK(r[0].found.what.front().starts_with("could not look: no answer within"));
    CHECK(r[0].found.what.back() == "well");
    CHECK(r[1].found.is == verdict::fit);
    CHECK(exit_code(r) == 3);
}

TEST_CASE("what costs is left while a job runs, and unknown is not idle", "[sweep]") {
    const std::vector<check> checks{{"plain", false, false, yes, well},
                                    {"memory", true, false, yes, well},
                                    {"bandwidth", true, true, yes, well}};
    const auto verdicts = [&](const ask_busy& ask, bool even_if_busy = false) {
        auto o = options(checks);
        o.even_if_busy = even_if_busy;
        std::vector<verdict> out;
        for (const auto& one : sweep_node(o, ask)) out.push_back(one.found.is);
        return out;
    };
    using enum verdict;
    CHECK(verdicts(idle) == std::vector{fit, fit, fit});
    CHECK(verdicts(busy) == std::vector{fit, skipped, skipped});
    CHECK(verdicts(silent) == std::vector{fit, unknown, unknown});
    CHECK(verdicts(never_asked, true) == std::vector{fit, fit, fit});
    CHECK(verdicts(never_asked) == std::vector{fit, unknown, unknown});  // it threw: no answer
}

TEST_CASE("what a child says of itself is not believed as it comes", "[sweep]") {
    for (const auto* bad :
         {"{}", "[]", "3", R"({"verdict":"good","what":[]})", R"({"verdict":"fit","what":7})"})
        CHECK(!finding_from(nlohmann::json::parse(bad)));
    const finding f{verdict::unfit, {"a", "\xc3\xa4"}, {{"n", 2.5}}};
    const auto back = finding_from(as_json(f)).value();
    CHECK(back.is == f.is);
    CHECK(back.what == f.what);
    CHECK(back.figures == f.figures);
}

}  // namespace test_run
