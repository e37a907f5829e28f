// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "sweep/drain.hpp"
#include "sweep/print.hpp"
#include "test/unit/fault/fake_cluster.hpp"

namespace test_told {

using namespace banyan;
using namespace banyan::sweep;
using fault::node_status;

namespace {

const report well{{"links", fit("8 ports")}, {"clock", fit("synchronised")}};
const report broken{
    {"links", fit("8 ports")}, {"mounts", unfit("/x is not mounted")}, {"disks", unfit("full")}};
const report unsure{{"links", fit("8 ports")}, {"mounts", unknown({errc::unavailable, "no answer", {}})}};
const report skipping{{"links", fit("8 ports")}, {"memory", {verdict::skipped, {"a job has the node"}}}};
const std::string ours = "banyan-sweep: mounts: /x is not mounted";

decision::step step(const node_status& node, const report& r, bool whole = true) {
    return decide(node, r, whole).what;
}

}  // namespace

TEST_CASE("an unfit node is drained, with the first check that says so", "[sweep]") {
    const auto d = decide({"n1"}, broken, true);
    CHECK(d.what == decision::step::drain);
    CHECK(d.reason == ours);
    CHECK(step({"n1"}, broken, false) == decision::step::drain);
    CHECK(step({"n1"}, unsure) == decision::step::nothing);
    CHECK(step({"n1"}, well) == decision::step::nothing);
    CHECK(step({"n1", false, true, "an admin's"}, broken) == decision::step::nothing);
    CHECK(step({"n1", true, false, "Not responding"}, broken) == decision::step::nothing);
    CHECK(step({"n1", false, true, ours}, broken) == decision::step::nothing);
    CHECK(step({"n1", false, false, "", true}, broken) == decision::step::nothing);
}

TEST_CASE("a node returns when all is well and the sweep drained it, else never", "[sweep]") {
    const node_status drained{"n1", false, true, ours};
    CHECK(step(drained, well) == decision::step::resume);
    CHECK(step(drained, well, false) == decision::step::nothing);
    CHECK(step(drained, unsure) == decision::step::nothing);
    CHECK(step(drained, skipping) == decision::step::nothing);
    CHECK(step(drained, {}) == decision::step::nothing);
    CHECK(step({"n1", true, true, ours}, well) == decision::step::nothing);
    for (const auto* foreign : {"", "banyan: gpu-xid-79", "banyan-sweep", " banyan-sweep: x",
                                "x banyan-sweep: y", "Banyan-sweep: x", "NHC: x"})
        CHECK(step({"n1", false, true, foreign}, well) == decision::step::nothing);
}

TEST_CASE("a reason is one short line, whatever was found", "[sweep]") {
    const report hostile{{"mounts", unfit("/a\n\x1b[2J" + std::string(500, 'x') + " is not mounted")}};
    const auto reason = reason_for(hostile);
    CHECK(reason.size() <= 200);
    CHECK(is_printable(reason));
    CHECK(reason.starts_with("banyan-sweep: mounts: /a\\n"));
    std::string umlauts;
    for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
    CHECK(is_printable(reason_for({{"mounts", unfit(umlauts)}})));
    CHECK(is_printable(reason_for({{"mounts", unfit("x" + umlauts)}})));
    CHECK(reason_for({{"mounts", {verdict::unfit, {}}}}) == "banyan-sweep: mounts: unfit");
    CHECK(reason_for(well).empty());
}

TEST_CASE("Slurm is told what was decided, and a refusal is an error", "[sweep]") {
    fault::testing::fake_state state;
    fault::testing::fake_cluster slurm(state);
    state.nodes["n1"] = {"n1"};
    CHECK(settle(slurm, "n1", broken, true).value() == "drained: " + ours);
    CHECK(state.nodes["n1"].reason == ours);
    CHECK(settle(slurm, "n1", broken, true).value() == "the node is drained already: " + ours);
    CHECK(settle(slurm, "n1", unsure, true));
    CHECK(state.calls == std::vector<std::string>{"drain n1"});
    CHECK(settle(slurm, "n1", well, true).value() == "returned: " + ours);
    CHECK(state.calls == std::vector<std::string>{"drain n1", "resume n1"});
}

TEST_CASE("the table fits its width and shows nothing that commands a terminal", "[sweep]") {
    const std::string word(250, 'w');
    const report r{{"links", unfit("a\tb\x1b[31m " + word + " \xe2\x80\xae")},
                   {"bandwidth", {verdict::skipped, {"first", "second line " + std::string(90, 'x')}}},
                   {"gpus", unknown({errc::unavailable, "library", "hint"})}};
    const auto text = as_table(r, {"n\n1", "not drained: " + word, true, 1});
    std::size_t lines = 0;
    for (const auto line : split(text, '\n')) {
        CHECK(line.size() <= 100);
        CHECK(is_printable(line));
        ++lines;
    }
    CHECK(lines > 10);
    CHECK(text.starts_with("n\\n1 is unfit\n  links      UNFIT    a\\tb\\x1b[31m\n"));
    CHECK(text.find("  gpus       ?        could not look: library; hint\n") != std::string::npos);
    CHECK(as_table(well, {"n1"}).starts_with("n1 is fit\n"));
    CHECK(as_table(unsure, {"n1"}).starts_with("n1 is not known to be fit\n"));
    CHECK(as_table(skipping, {"n1"}).starts_with("n1 is fit\n"));
}

TEST_CASE("programs get JSON, also where names are no text", "[sweep]") {
    const report r{{"mounts", unfit("/\xff is not mounted")}};
    const auto j = nlohmann::json::parse(as_json_text(r, {"n1", "drained", false, 0.5}));
    CHECK(j["node"] == "n1");
    CHECK(j["verdict"] == "unfit");
    CHECK(j["checks"][0]["check"] == "mounts");
    CHECK(j["slurm"]["failed"] == false);
    CHECK(!nlohmann::json::parse(as_json_text(well, {"n1"})).contains("slurm"));
}

TEST_CASE("node_exporter gets one gauge for each verdict", "[sweep]") {
    auto r = broken;
    r[0].found.figures["links_active"] = 8;
    const auto text = as_metrics(r, 1'700'000'000);
    for (const auto* line : {"banyan_sweep_check{check=\"links\",verdict=\"fit\"} 1\n",
                             "banyan_sweep_check{check=\"links\",verdict=\"unfit\"} 0\n",
                             "banyan_sweep_check{check=\"mounts\",verdict=\"unfit\"} 1\n",
                             "banyan_sweep_links_active 8\n", "banyan_sweep_timestamp_seconds 1700000000\n"})
        CHECK(text.find(line) != std::string::npos);
    CHECK(text.find("not mounted") == std::string::npos);
}

}  // namespace test_told
