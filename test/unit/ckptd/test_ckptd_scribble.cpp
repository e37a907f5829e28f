// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that writes to its buffers while the daemons have them in their hands, beside another job.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"

namespace test_ckptd_scribble {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

TEST_CASE("a rank that writes to its sealed buffers harms its own job alone", "[ckptd]") {
    const auto what = GENERATE(as<std::string>(), "bytes", "holes", "header");
    const bool flushed = GENERATE(false, true);
    CAPTURE(what, flushed);
    cluster c({2, "", {}});
    const auto storage = flushed ? c.dir() + "/store" : std::string();
    c.open(c.request(7, 2, 1, storage.empty() ? "" : storage + "7", flushed ? 1 : 0));
    c.open(c.request(8, 2, 1, storage.empty() ? "" : storage + "8", flushed ? 1 : 0));
    auto hostile = start_ranks(c, 7, {1, 2});
    auto others = start_ranks(c, 8, {1, 2});
    // Its memory is there, and is never looked at by this process again.
    all_are(ask_all(hostile, "save 1"), BCK_OK);
    for (auto& r : hostile) CHECK(std::stoi(r.ask("scribble " + what)) > 0);
    for (int step = 1; step <= 8; ++step) {
        for (auto& r : hostile) r.say(fmt::format("save {}", step + 1));
        all_are(ask_all(others, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(others, fmt::format("wait {} {} 15000", step, flushed ? 3 : 2)), BCK_OK);
    }
    for (const int node : {1, 2}) {
        // The connection between the two has carried all of it.
        CHECK(c.log(node).find("is not from its peer") == std::string::npos);
        CHECK(c.session(node, 8)["counters"]["damaged"] == 0);
        CHECK(c.session(node, 8)["counters"]["torn"] == 0);
        CHECK(c.session(node, 8)["warning"] == "");
    }
    for (auto& r : hostile) r.kill();
    for (auto& r : others) r.kill();
    c.new_step(8, 1, {1, 2});
    auto again = start_ranks(c, 8, {1, 2});
    all_are(ask_all(again, "restart"), restored_state{.step = 8, .source = BCK_FROM_LOCAL});
}

}  // namespace test_ckptd_scribble
