// SPDX-License-Identifier: BSD-3-Clause
//
// What a save takes of the rank's time while the other node's daemon is dead, or is there and does not
// answer, as behind a partition.
#include <algorithm>
#include <csignal>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <unistd.h>

#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"

namespace banyan::bench {
namespace {

constexpr std::size_t saves = 15;
constexpr unsigned between_us = 200'000;

struct stalls {
    std::vector<double> of;
    std::size_t skipped = 0;

    double mean() const {
        double sum = 0;
        for (const auto s : of) sum += s;
        return sum / static_cast<double>(of.size());
    }
};

// A save that is skipped for want of a buffer has held the rank up for what the call took. Both ranks take
// part where both can.
result<stalls> save_on(std::vector<rank_process>& ranks, std::uint64_t& step) {
    stalls out;
    for (std::size_t i = 0; i < saves; ++i) {
        ++step;
        for (auto& r : ranks) BANYAN_CHECK(r.say({deed::save, step}));
        BANYAN_TRY(const auto first, ranks[0].hear());
        out.of.push_back(first.seconds);
        out.skipped += first.code == BCK_E_BUSY;
        if (first.code != BCK_OK && first.code != BCK_E_BUSY)
            return fail(errc::unavailable, fmt::format("a save: {} ({})", first.text, first.code));
        for (std::size_t rank = 1; rank < ranks.size(); ++rank) BANYAN_CHECK(ranks[rank].hear());
        ::usleep(between_us);
    }
    return out;
}

result<void> measure(const ckpt_plan& plan, figures& out, bool dead) {
    BANYAN_TRY(const auto f, fleet::start({.nodes = 2}));
    const auto bytes = plan.small / 4;
    BANYAN_CHECK(f->open(f->request(1, 2, 1, bytes)));
    std::vector<rank_process> ranks;
    for (const std::uint32_t rank : {0u, 1u}) {
        BANYAN_TRY(auto one, rank_process::start({f->socket(rank + 1), 1, rank, 2, bytes}));
        ranks.push_back(std::move(one));
    }
    BANYAN_CHECK(look_all(ranks));
    std::uint64_t step = 0;
    BANYAN_TRY(const auto usual, save_on(ranks, step));
    // The peer's rank goes with its node.
    ranks.pop_back();
    if (dead)
        f->kill_node(2);
    else
        ::kill(f->pid(2), SIGSTOP);
    BANYAN_TRY(const auto then, save_on(ranks, step));
    const auto what = std::string("stall of a save while the peer ") + (dead ? "is dead" : "does not answer");
    out.add(what, then.mean() / usual.mean(), "x", "the mean with a peer", "<=", 1.1);
    out.add(what + ", the longest", *std::max_element(then.of.begin(), then.of.end()) * 1000, "ms", "-");
    out.add(what + ", saves skipped", static_cast<double>(then.skipped), "saves",
            fmt::format("{} saves", saves));
    return {};
}

}  // namespace

result<void> measure_stall(const ckpt_plan& plan, figures& out) {
    BANYAN_CHECK(measure(plan, out, true));
    return measure(plan, out, false);
}

}  // namespace banyan::bench
