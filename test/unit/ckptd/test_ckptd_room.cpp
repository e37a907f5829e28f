// SPDX-License-Identifier: BSD-3-Clause
//
// A step that is there, and for which a node has no room for now.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

TEST_CASE("a step in storage is not given up because memory is short", "[ckptd]") {
    constexpr std::size_t large = 2'000'000;
    constexpr std::uint64_t limit = 40u << 20, left = 1u << 20;
    const bool bounded = GENERATE(true, false);
    CAPTURE(bounded);
    cluster c({3, fmt::format("memory_limit = \"40M\"\nbegin_within = \"{}\"\n", bounded ? "2s" : "5m"), {}});
    const auto storage = c.dir() + "/store";
    {
        CHECK(c.open(c.request(7, 3, 1, storage, 1)).empty());
        auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, large);
        all_are(ask_all(ranks, "restart"), "-3 0 0 0");
        for (const char* step : {"1", "2"}) {
            all_are(ask_all(ranks, fmt::format("save {}", step)), "0");
            all_are(ask_all(ranks, fmt::format("wait {} 3 9000", step)), "0");
        }
        all_are(ask_all(ranks, "finalize 1"), "0");
    }
    for (const int node : {1, 2, 3}) REQUIRE(ckpt::session_close(c.socket(node), 7, false, 5s));
    auto other = c.request(8, 1, 1, "", 0);
    other.nodes[0] = {c.name(2), c.addr(2), {0}, 0};
    other.spares.clear();
    other.self = c.name(2);
    other.bytes = (limit - left) / other.buffers - (300u << 10);
    const auto opened = ckpt::session_open(c.socket(2), other, 10s);
    if (!opened) FAIL(opened.error().text());
    auto again = c.request(7, 3, 1, storage, 1);
    again.restart = 1;
    CHECK(c.open(again).empty());
    auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, large);
    const auto short_of = [&](const std::string& text) {
        return text.find("banyan-shard-7-1") != std::string::npos && text.find("MiB") != std::string::npos;
    };
    if (bounded) {
        // Where there is room all hear the same, on whichever node.
        for (const int rank : {0, 2}) ranks[static_cast<std::size_t>(rank)].say("restart");
        for (const int rank : {0, 2}) {
            auto& r = ranks[static_cast<std::size_t>(rank)];
            CHECK(r.hear().starts_with("-8"));
            const auto why = r.ask("error");
            CAPTURE(why);
            CHECK(why.find("nor from an older step: node n2: ") != std::string::npos);
            CHECK(short_of(why));
        }
    } else {
        ranks[0].say("restart");
        CHECK(eventually([&] { return short_of(c.session(2, 7)["warning"].get<std::string>()); }));
    }
    REQUIRE(ckpt::session_close(c.socket(2), 8, false, 5s));
    ranks[1].say("restart");
    // Until it is known that there is room the answer is the same.
    const auto begins = [&](rank_process& r, std::string answer) {
        CHECK(eventually([&] { return !answer.starts_with("-8") || (answer = r.ask("restart")).empty(); }));
        return answer;
    };
    CHECK(begins(ranks[0], bounded ? ranks[0].ask("restart") : ranks[0].hear()) == "0 2 3 1");
    CHECK(begins(ranks[2], ranks[2].ask("restart")) == "0 2 3 1");
    CHECK(ranks[1].hear() == "0 2 3 1");
    CHECK(c.printed("an older one is looked for") == 0);
}
