// SPDX-License-Identifier: BSD-3-Clause
//
// A save against a plain memcpy of as many bytes into warm memory, by as many processes at once; a restore
// from local memory against the same; the first save of a job against its later ones.
#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"

namespace banyan::bench {
namespace {

struct shape {
    std::size_t bytes = 0;
    std::uint32_t ranks = 1;
    std::size_t regions = 1;
};

struct times {
    double copy = 0, save = 0, restore = 0;
};

result<std::vector<rank_process>> start_ranks(const fleet& f, std::uint64_t job, const shape& of) {
    std::vector<rank_process> ranks;
    for (std::uint32_t rank = 0; rank < of.ranks; ++rank) {
        BANYAN_TRY(auto one, rank_process::start({f.socket(1), job, rank, of.ranks, of.bytes, of.regions}));
        ranks.push_back(std::move(one));
    }
    // Attaches: memory is ready from here on.
    BANYAN_CHECK(look_all(ranks));
    return ranks;
}

result<times> measure(const ckpt_plan& plan, const fleet& f, std::uint64_t job, const shape& of) {
    auto request = f.request(job, 1, of.ranks, of.bytes);
    request.buffers = 2;
    BANYAN_CHECK(f.open(request));
    BANYAN_TRY(auto ranks, start_ranks(f, job, of));
    std::vector<double> copies, saves, restores;
    const auto take = [&](std::vector<double>& into, const order& o) -> result<void> {
        BANYAN_TRY(const auto seconds, slowest(ranks, o));
        into.push_back(seconds);
        return {};
    };
    std::uint64_t step = 0;
    std::vector<double> ignored;
    // The first one is measure_first_saves'. Quiet before each: the daemon's checksum of the save before is
    // no part of this save's stall.
    for (std::size_t run = 0; run <= plan.runs; ++run) {
        if (run > 0) BANYAN_CHECK(take(copies, {deed::copy}));
        BANYAN_CHECK(take(run == 0 ? ignored : saves, {deed::save, ++step}));
        BANYAN_CHECK(take(ignored, {deed::wait, step, BCK_MEMORY}));
    }
    // The first restore of a generation verifies every copy; the later ones show the transfer alone.
    for (std::size_t run = 0; run <= plan.runs; ++run) {
        if (run > 0) BANYAN_CHECK(take(copies, {deed::copy}));
        BANYAN_CHECK(take(run == 0 ? ignored : restores, {deed::restart}));
    }
    ranks.clear();
    f.close(job);
    return times{median(copies), median(saves), median(restores)};
}

}  // namespace

result<void> measure_saves(const ckpt_plan& plan, figures& out) {
    BANYAN_TRY(const auto f, fleet::start({}));
    std::uint64_t job = 0;
    const char* warm = "memcpy into a warm buffer";
    for (const shape& of : {shape{plan.small, 1}, shape{plan.small, 1, 331}, shape{plan.small, 2},
                            shape{plan.large, 1}, shape{plan.large, 2}}) {
        BANYAN_TRY(const auto t, measure(plan, *f, ++job, of));
        const auto what =
            fmt::format("{}, {} rank{}{}", size_text(of.bytes), of.ranks, of.ranks == 1 ? "" : "s",
                        of.regions == 1 ? "" : fmt::format(", {} uneven regions", of.regions));
        out.add("save, " + what, t.copy / t.save, "x", warm, ">=", 0.9);
        out.add("local restore, " + what, t.copy / t.restore, "x", warm, ">=", 0.9);
        if (of.bytes == plan.large && of.ranks == 1)
            out.add("stall of a save per GiB", t.save / static_cast<double>(of.bytes) * (1u << 30) * 1000,
                    "ms", "-");
    }
    return {};
}

result<void> measure_first_saves(const ckpt_plan& plan, figures& out) {
    BANYAN_TRY(const auto f, fleet::start({.nodes = 2}));
    std::vector<double> stalls, safe;
    for (std::uint64_t job = 1; job <= plan.runs; ++job) {
        BANYAN_CHECK(f->open(f->request(job, 2, 1, plan.small)));
        std::vector<rank_process> ranks;
        for (const std::uint32_t rank : {0u, 1u}) {
            BANYAN_TRY(auto one, rank_process::start({f->socket(rank + 1), job, rank, 2, plan.small}));
            ranks.push_back(std::move(one));
        }
        BANYAN_CHECK(look_all(ranks));
        std::vector<double> save, all;
        for (std::uint64_t step = 1; step <= 5; ++step) {
            BANYAN_TRY(const auto saved, slowest(ranks, {deed::save, step}));
            BANYAN_TRY(const auto waited, slowest(ranks, {deed::wait, step, BCK_REPLICATED}));
            save.push_back(saved);
            all.push_back(saved + waited);
        }
        const auto first_against_rest = [](const std::vector<double>& v) {
            return v.front() / median({v.begin() + 1, v.end()});
        };
        stalls.push_back(first_against_rest(save));
        safe.push_back(first_against_rest(all));
        ranks.clear();
        f->close(job);
    }
    out.add("first save", median(stalls), "x", "later saves", "<=", 1.2);
    out.add("first save until it has a second copy", median(safe), "x", "later saves", "<=", 1.2);
    return {};
}

}  // namespace banyan::bench
