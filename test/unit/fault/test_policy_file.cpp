// SPDX-License-Identifier: BSD-3-Clause
//
// The policy as a file: what is refused and where, and that rules decide in order, by what they name, and by
// how often something was seen.
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/incident/engine.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_policy_file {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

/// All problems, one a line.
std::string problems_of(std::string_view text) {
    std::string out;
    for (const auto& p : parse_policy("p", text).problems) out += p.text("p") + "\n";
    return out;
}

policy made(std::string_view text) {
    auto read = parse_policy("p", text);
    INFO(problems_of(text));
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

incident xid(engine& e, const std::string& rest, std::int64_t at_ms, const std::string& node = "n03") {
    return *e.find(e.absorb(event_of(gpu_line(3, rest), at_ms, 0, node), at_ms).number);
}

incident xid(const std::string& rest) {
    engine e;
    return xid(e, rest, 1'000'000);
}

class folder {
  public:
    std::filesystem::path path = banyan::testing::scratch_path("policy");
    folder() { std::filesystem::create_directories(path); }
    ~folder() { std::filesystem::remove_all(path); }
    std::filesystem::path file(const std::string& name, const std::string& text) const {
        std::ofstream(path / name) << text;
        return path / name;
    }
};

constexpr const char* one_rule = "[[rule]]\nname = \"a\"\naction = \"log\"\n";

}  // namespace

TEST_CASE("what is wrong in a policy is told with its place, the rule, what is given and what is possible",
          "[fault]") {
    struct wrong_line {
        const char *line, *place, *told;
    };
    for (const auto& [line, place, told] : {
             wrong_line{"action = \"reboot\"", "p:3:10: rule \"a\": action = \"reboot\" is not possible",
                        "possible are ignore, log, notify-user, alert, seal, avoid, sweep, restart-step, "
                        "requeue, drain, down"},
             {"action = \"restart in place\"", "p:3:10: ", "is not possible"},
             {"action = \"dran\"", "p:3:10: ", "did you mean \"drain\"?"},
             {"action = [\"drain\", \"down\"]", "p:3:10: ", "several actions"},
             {"action = 3", "p:3:10: ", "action = 3 is not possible"},
             {"action = []", "p:3:10: ", "action is empty"},
             {"reason = \"gpu-rest\"", "p:3:10: ", "did you mean \"gpu-reset\"?"},
             {"reason = [\"memory\", \"a\\u001b[2J\"]", "p:3:21: ", "\\x1b[2J"},
             {"kind = \"Xid\"", "p:3:8: ", "xid, sxid, symptom, fabric, silence"},
             {"class = \"drain\"", "p:3:9: ", "secondary, harmless, job, inspect, reset, restart"},
             {"object = \"sw\"", "p:3:10: ", "gpu, hca, link, switch, node"},
             {"part = \"ram\"", "p:3:8: ", "part = \"ram\" is not possible"},
             {"severity = \"bad\"", "p:3:12: ", "notice, warning, error, fatal"},
             {"symptom = \"memory\"", "p:3:11: ", "memory-uncorrected"},
             {"xid = 0", "p:3:7: ", "expected a number from 1 to 99999"},
             {"xid = -79", "p:3:7: ", "xid = -79 is not possible"},
             {"xid = 100000", "p:3:7: ", "expected a number"},
             {"xid = \"150-144\"", "p:3:7: ", "xid = \"150-144\" is not possible"},
             {"xid = \"1-2-3\"", "p:3:7: ", "is not possible"},
             {"xid = [79, \"-\"]", "p:3:12: ", "xid = \"-\" is not possible"},
             {"xid = 7.9", "p:3:7: ", "is not possible"},
             {"sxid = []", "p:3:8: ", "sxid is empty"},
             {"count = 3", "p:3:9: ", "it has count alone"},
             {"within = \"1h\"", "p:3:10: ", "it has within alone"},
             {"jobs = 3", "p:3:8: ", "it has jobs alone"},
             {"jobs = 1\nwithin = \"1h\"", "p:3:8: ", "jobs = 1; expected a number from 2 to 256"},
             {"count = 2\njobs = \"3\"\nwithin = \"1h\"", "p:4:8: ", "expected a number from 2 to 256"},
             {"object = \"opensm\"", "p:3:10: ", "switch, node, manager"},
             {"count = 1\nwithin = \"1h\"", "p:3:9: ", "expected a number from 2 to 256"},
             {"count = 9223372036854775807\nwithin = \"1h\"", "p:3:9: ", "expected a number from 2 to 256"},
             {"count = 2\nwithin = \"1s\"", "p:4:10: ", "expected a duration from \"1m\" to \"720h\""},
             {"count = 2\nwithin = \"1000h\"", "p:4:10: ", "expected a duration"},
             {"count = 2\nwithin = 60", "p:4:10: ", "expected a duration"},
             {"why = \"a\\nb\"\naction = \"log\"", "p:3:7: ", "expected one line of text"},
             {"why = \"\"\naction = \"log\"", "p:3:7: ", "expected one line of text"},
             {"raeson = \"memory\"", "p:3:10: ", "there is no key \"raeson\""},
         }) {
        CAPTURE(line);
        const auto got = problems_of(fmt::format("[[rule]]\nname = \"a\"\n{}\n", line));
        CHECK(got.find(place) != std::string::npos);
        CHECK(got.find(told) != std::string::npos);
        CHECK(got.find('\x1b') == std::string::npos);
        INFO(got);
        CHECK(got.starts_with("p:"));
    }
}

TEST_CASE("all that is wrong is told at once", "[fault]") {
    const auto got = problems_of(
        "[[rule]]\nname = \"a\"\nkind = \"x\"\naction = \"y\"\n[[rule]]\naction = \"log\"\n[[rule]]\nname = "
        "\"a\"\naction = \"log\"\n[[rule]]\nname = \"a b\"\naction = \"log\"\n[other]\n");
    CHECK(got.find("p:3:8: rule \"a\": kind = \"x\"") != std::string::npos);
    CHECK(got.find("p:4:10: rule \"a\": action = \"y\"") != std::string::npos);
    CHECK(got.find("p:5:1: rule 2: it has no name") != std::string::npos);
    CHECK(got.find("p:8:8: rule \"a\": the rule of line 2 has this name") != std::string::npos);
    CHECK(got.find("p:11:8: rule 4: name = \"a b\"") != std::string::npos);
    CHECK(got.find("p:13:1: there is no \"other\" in a policy") != std::string::npos);
}

TEST_CASE("files without rules, and with too many, are refused", "[fault]") {
    CHECK(problems_of("").find("p:1:1: there is no rule") == 0);
    CHECK(problems_of("# all of them are gone\n").find("there is no rule") != std::string::npos);
    CHECK(problems_of("rule = []\n").find("there is no rule") != std::string::npos);
    CHECK(problems_of("rule = 3\n").find("rule begins with [[rule]]") != std::string::npos);
    CHECK(problems_of("rule = [1, 2]\n").find("rule begins with [[rule]]") != std::string::npos);
    CHECK(problems_of("[[rule\n").find("p:1:") == 0);
    CHECK(problems_of(std::string(100'000, '[')).find("it is not TOML") != std::string::npos);
    CHECK(problems_of("[[rule]]\nname = \"\xff\"\n").find("it is not TOML") != std::string::npos);
    std::string many;
    for (int n = 0; n < 4096; ++n) many += fmt::format("[[rule]]\nname=\"r{}\"\nxid=5\naction=\"log\"\n", n);
    CHECK(made(many).decide(xid("79, x")).rule.empty());
    many += "[[rule]]\nname = \"more\"\naction = \"log\"\n";
    CHECK(problems_of(many).find("there are 4097 rules; at most 4096") != std::string::npos);
}

TEST_CASE("what is no file of a possible size is no policy", "[fault]") {
    const folder f;
    const auto error_of = [](const std::filesystem::path& path) {
        const auto read = load_policy(path);
        return read ? std::string() : read.error().text();
    };
    CHECK(error_of(f.file("right.toml", one_rule)).empty());
    CHECK(error_of("").empty());
    CHECK(error_of(f.path / "none").find("cannot open the policy") == 0);
    CHECK(error_of(f.path).find("is a directory, expected a file") != std::string::npos);
    REQUIRE(::mkfifo((f.path / "fifo").c_str(), 0600) == 0);
    CHECK(error_of(f.path / "fifo").find("is a FIFO, expected a file") != std::string::npos);
    CHECK(error_of("/dev/zero").find("expected a file") != std::string::npos);
    const auto huge = f.file("huge.toml", one_rule);
    std::filesystem::resize_file(huge, 100 << 20);
    CHECK(error_of(huge).find("is larger than 1048576 bytes") != std::string::npos);
    if (::geteuid() != 0) {
        const auto secret = f.file("secret.toml", one_rule);
        std::filesystem::permissions(secret, std::filesystem::perms::none);
        CHECK(error_of(secret).find("must be able to read it") != std::string::npos);
    }
    const auto wrong = error_of(f.file("wrong.toml", "[[rule]]\naction = \"x\"\n"));
    CHECK(wrong.find("wrong.toml:1:1: rule 1: it has no name") != std::string::npos);
    CHECK(wrong.find("(and 1 more errors)") != std::string::npos);
}

TEST_CASE("the first rule that matches decides, and names itself", "[fault]") {
    const auto p = made(R"(
[[rule]]
name = "nvlink"
xid = [74, "144-150"]
action = "seal"
[[rule]]
name = "bad-memory"
part = ["memory", "cpu"]
severity = "error"
action = "down"
why = "replace it: it is broken"
[[rule]]
name = "hot"
symptom = "hca-temperature"
action = "drain"
[[rule]]
name = "rest"
kind = ["xid", "symptom"]
action = "log"
)");
    CHECK(p.decide(xid("149, x")).rule == "nvlink");
    CHECK(p.decide(xid("149, x")).step == step_kind::seal);
    CHECK(p.decide(xid("151, x")).rule == "rest");
    // The verdict makes it worse; it speaks of the same fault.
    engine e;
    xid(e, "149, x", 1'000'000);
    CHECK(p.decide(xid(e, "154, from 0x0 (None) to 0x2 (Node Reboot Required)", 1'000'100)).rule == "nvlink");
    incident i;
    i.object.device = "EDAC";
    i.symptom = "memory-uncorrected";
    i.severity = severity::error;
    CHECK(p.decide(i).rule == "bad-memory");
    CHECK(advice_of(p.decide(i), "n1", true).find("State=DOWN") != std::string::npos);
    i.severity = severity::warning;
    CHECK(p.decide(i).rule == "rest");
    i.symptom = "hca-temperature";
    CHECK(p.decide(i).step == step_kind::drain);
    i.symptom = "of-tomorrow";
    CHECK(p.decide(i).rule == "rest");
    i.object.device.clear();
    i.object.kind = object_kind::node;
    i.reason = silent_reason;
    const auto none = p.decide(i);
    CHECK(none.rule.empty());
    CHECK(none.step == step_kind::alert);
    CHECK(none.why == "no rule is for it: a person should look");
}

TEST_CASE("a GPU that fell off the bus is an Xid 79, said or not", "[fault]") {
    const auto p = made("[[rule]]\nname = \"bus\"\nxid = 79\naction = \"alert\"\n");
    CHECK(p.decide(xid("79, x")).rule == "bus");
    engine e;
    const auto lost = event_of("NVRM: GPU 0000:03:00.0: GPU has fallen off the bus.");
    REQUIRE(lost.fault.kind == fault_kind::bus_loss);
    CHECK(p.decide(*e.find(e.absorb(lost, 1).number)).rule == "bus");
}

TEST_CASE("nothing is done to what is no node", "[fault]") {
    const auto p = made("[[rule]]\nname = \"all\"\naction = \"down\"\n");
    incident i;
    i.object.kind = object_kind::link;
    CHECK(p.decide(i).step == step_kind::alert);
    CHECK(p.decide(i).why == "the node is taken out now, but there is no node to do it to");
    i.object.kind = object_kind::sw;
    CHECK(p.decide(i).step == step_kind::alert);
    i.reason = "nvswitch";
    CHECK(p.decide(i).step == step_kind::node_out);
    i.object.kind = object_kind::hca;
    CHECK(p.decide(i).step == step_kind::node_out);
}

TEST_CASE("a rule counts how often the part's fault was seen within its time", "[fault]") {
    constexpr std::int64_t hour = 3'600'000, begin = 1'000 * hour;
    const auto p = made(
        "[[rule]]\nname = \"again\"\nxid = 94\ncount = 3\nwithin = \"24h\"\naction = \"drain\"\n"
        "[[rule]]\nname = \"rest\"\naction = \"log\"\n");
    engine e;
    const auto rule_after = [&](std::int64_t at, const std::string& node = "n03") {
        return p.decide(xid(e, "94, x", at, node), e.all()).rule;
    };
    CHECK(rule_after(begin) == "rest");
    CHECK(rule_after(begin + 10'000) == "rest");  // the same burst, however many lines
    CHECK(rule_after(begin + 20'000) == "rest");
    CHECK(rule_after(begin + hour) == "rest");
    CHECK(rule_after(begin + 2 * hour, "n04") == "rest");  // another node
    xid(e, "13, x", begin + 3 * hour);                     // another fault
    CHECK(rule_after(begin + 4 * hour) == "again");
    CHECK(rule_after(begin + 25 * hour) == "rest");  // what was a day ago does not count
    CHECK(rule_after(begin + 26 * hour) == "again");
    const auto close = [&](std::string_view by) {
        for (const auto& [number, i] : policy::incidents(e.all())) {
            e.find(number)->closed_ms = 1;
            e.find(number)->closed_by = by;
        }
    };
    // It came back as it went.
    close(fabric_is_back);
    CHECK(rule_after(begin + 27 * hour) == "again");
    // It was a part of something else, or somebody has seen to it.
    const auto by = GENERATE(as<std::string>{}, std::string(fabric_larger), "uid 7");
    close(by);
    CHECK(rule_after(begin + 28 * hour) == "rest");
}

TEST_CASE("lines of what goes on for days count, and ask for a new look", "[fault]") {
    const auto p = made(
        "[[rule]]\nname = \"many\"\nsymptom = \"pcie-corrected\"\ncount = 5\nwithin = \"1h\"\naction = "
        "\"drain\"\n"
        "[[rule]]\nname = \"rest\"\naction = \"log\"\n");
    engine e;
    const auto line = "pcieport 0000:00:1c.5: AER: Corrected error received: 0000:03:00.0";
    REQUIRE(event_of(line).fault.kind == fault_kind::symptom);
    std::uint64_t number = 0;
    for (int n = 0; n < 600; ++n) {
        const auto out = e.absorb(event_of(line, 1'000'000 + n * 1000), 1);
        CHECK_FALSE((n > 0 && out.created));
        number = out.number;
        auto* i = e.find(number);
        // Seen at 0, 31, 62, 93 and 124 seconds.
        CHECK(p.asks_for_more(*i, e.all()) == (n >= 124));
    }
    e.find(number)->decided = static_cast<std::uint8_t>(step_kind::drain);
    CHECK_FALSE(p.asks_for_more(*e.find(number), e.all()));
    for (int n = 0; n < 1000; ++n) e.find(number)->add_seen(10'000'000 + n * 60'000, 30'000);
    CHECK(e.find(number)->seen.size() == incident::max_seen);
}

TEST_CASE("every reason has a page, and is one that a rule can name", "[fault]") {
    for (const auto reason : reason_words()) {
        CAPTURE(reason);
        CHECK(std::filesystem::exists(banyan::testing::source(fmt::format("docs/runbook/{}.md", reason))));
    }
    std::size_t pages = 0;
    for (const auto& page : std::filesystem::directory_iterator(banyan::testing::source("docs/runbook")))
        pages += page.path().filename() != "README.md" && page.path().filename() != "sweep.md";
    CHECK(pages == reason_words().size());
    for (std::size_t n = 0; n < part_words().size(); ++n)
        CHECK(part_words()[n] == catalog::name_of(static_cast<catalog::part>(n)));
    for (std::size_t n = 0; n < object_words().size(); ++n)
        CHECK(object_words()[n] == name_of(static_cast<object_kind>(n)));
    for (std::size_t n = 0; n < severity_words().size(); ++n)
        CHECK(severity_words()[n] == name_of(static_cast<severity>(n)));
}

}  // namespace test_policy_file
