// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "../topo/fixtures.hpp"
#include "train/admin_comment.hpp"
#include "train/admin_comment_reader.hpp"

namespace test_admin_comment {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;
using namespace banyan::train;

namespace {

plan planned(const fabric& f, const request& r) {
    const auto placed = place(f, all_hosts(f), r).value();
    plan out;
    out.shape = r.dims.text();
    out.ranks_per_node = r.ranks_per_node;
    out.launchers = r.launchers;
    for (const auto host : placed.nodes) out.nodes.push_back(f.hosts[host].name);
    out.spread = spread_in_words(r, spread_of(f, r, placed));
    return out;
}

}  // namespace

TEST_CASE("the AdminComment line, and back", "[train]") {
    const auto f = groups_of({8, 8});
    auto p = planned(f, make("tp=2,pp=2,dp=4", 9, 1));
    p.spares = {"n009"};
    const auto line = admin_comment(p);
    CHECK(line == "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n009) groups=g1:8 straddling-pp=0/4");
    const auto back = read_admin_comment(line).value();
    CHECK(back.shape == "tp=2,pp=2,dp=4");
    CHECK(back.nodes == 8);
    CHECK(back.spares == std::vector<std::string>{"n009"});
    CHECK_FALSE(back.model);
    p.spread.clear();
    CHECK(admin_comment(p) == "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n009)");
    p.spares.clear();
    CHECK(admin_comment(p).ends_with(" spares=0"));
}

TEST_CASE("nodes that are unlike the others, and when the fabric was looked at", "[train]") {
    auto f = groups_of({8});
    f.created_unix_s = 1795687200;
    f.hosts[6].gbps = f.hosts[7].gbps = 100;
    CHECK(planned(f, make("dp=8", 8)).spread == "groups=g1:8 unlike=n[006-007] fabric=2026-11-26T10:00Z");
    CHECK(planned(f, make("dp=2", 2)).spread == "groups=g1:2 fabric=2026-11-26T10:00Z");
}

TEST_CASE("only what the shape has straddles", "[train]") {
    const auto f = groups_of({8, 8});
    CHECK(admin_comment(planned(f, make("tp=2,dp=4", 4, 0))).ends_with(" groups=g1:4"));
    auto wide = make("tp=16,dp=2", 4, 0);
    CHECK(admin_comment(planned(f, wide)).ends_with(" groups=g1:4 straddling-tp=0/2"));
    wide.launchers = true;
    CHECK(admin_comment(planned(f, wide)).find(" ranks=32 tasks=4 ") != std::string::npos);
}

TEST_CASE("the end of the AdminComment line, where the plan has something to say", "[train]") {
    auto p = planned(groups_of({8, 8}), make("tp=2,pp=2,dp=4", 8, 0));
    const auto line = admin_comment(p);
    p.model = model_size{4096, 32, 8192, 16};
    const auto with_model = admin_comment(p);
    CHECK(with_model.ends_with(" model=hidden=4096,layers=32,seq=8192,micro=16"));
    CHECK(read_admin_comment(with_model)->model->hidden == 4096);
    CHECK_FALSE(read_admin_comment(with_model + "x"));
    p.later = better_later{60, 45};
    const auto waiting = admin_comment(p);
    CHECK(waiting == with_model + " waiting=60m:-45%");
    CHECK(read_admin_comment(waiting)->later->minutes == 60);
    CHECK(read_admin_comment(waiting)->later->per_cent == 45);
    for (const auto* bad : {"60", "60m:-145%", "m:-45%", "60m:-45"})
        CHECK_FALSE(read_admin_comment(line + " waiting=" + bad));
}

TEST_CASE("a line of ours is told from a note", "[train]") {
    CHECK(is_admin_comment("banyan: dp=4 nodes=4 ranks=4 spares=0 | a note"));
    for (const auto* note :
         {"", "a note by the admin", "banyan: broken", "banyan: dp=4", "banyan: dp=4 nodes=x"}) {
        INFO(note);
        CHECK_FALSE(is_admin_comment(note));
        CHECK(read_admin_comment(note).error().code == errc::not_found);
    }
}

}  // namespace test_admin_comment
