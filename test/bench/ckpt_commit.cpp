// SPDX-License-Identifier: BSD-3-Clause
//
// A step of a large job: one daemon for each node, all on this host; every rank a connection of this process.
// From the last seal until the last rank hears that the step is complete.
#include <algorithm>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckptd/client/connection.hpp"
#include "common/limits.hpp"
#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"

namespace banyan::bench {
namespace {

constexpr std::size_t shard = 64 * 1024;
constexpr std::chrono::seconds step_timeout{30};
constexpr std::size_t warm_up = 5;  // steps

using clock_type = std::chrono::steady_clock;

// Sleeps until the daemon changes something in the header, or a moment has passed.
void wait_for_change(ckpt::rank_memory_header& h, std::uint32_t seen) {
    const timespec most{0, 50'000'000};
    ::syscall(SYS_futex, &h.event, FUTEX_WAIT, seen, &most, nullptr, 0);
}

result<void> wait_until(ckpt::connection& rank, const std::string& what, auto done) {
    const auto until = clock_type::now() + step_timeout;
    for (auto& h = rank.header();;) {
        const auto seen = h.event.load();
        if (done(h)) return {};
        if (clock_type::now() > until) return fail(errc::unavailable, what + " takes too long");
        wait_for_change(h, seen);
    }
}

result<void> seal(ckpt::connection& rank, std::uint64_t step) {
    std::uint32_t free = 0;
    BANYAN_CHECK(wait_until(rank, "a free buffer", [&](auto& h) {
        for (free = 0; free < rank.buffers(); ++free)
            if (ckpt::buffer_is_free(h.buffer[free])) return true;
        return false;
    }));
    auto& head = rank.header().buffer[free];
    ckpt::begin_write(head);
    std::fill_n(rank.buffer(free), shard, static_cast<std::byte>(step));
    ckpt::end_write(head, step, rank.generation(), shard);
    if (rank.post(ckpt::message::sealed, "buffer", free)) return {};
    return fail(errc::unavailable, "a daemon has ended");
}

}  // namespace

result<void> measure_commit(const ckpt_plan& plan, figures& out) {
    BANYAN_CHECK(raise_descriptor_limit(4096));
    BANYAN_TRY(const auto f, fleet::start({.nodes = plan.nodes, .extra = "memory_limit = \"64MiB\"\n"}));
    const auto request = f->request(1, plan.nodes, plan.ranks_of_node, shard);
    BANYAN_CHECK(f->open(request));
    std::vector<ckpt::connection> ranks(request.world);
    for (std::uint32_t rank = 0; rank < request.world; ++rank) {
        BANYAN_CHECK(ranks[rank].open(f->socket(1 + rank / plan.ranks_of_node)));
        BANYAN_CHECK(ranks[rank].attach({1, {}, rank, request.world, {}}, shard, true, [] {}));
    }
    std::vector<double> times;
    double leader = 0, first = 0;
    for (std::uint64_t step = 1; step <= plan.steps + warm_up; ++step) {
        if (step == warm_up + 1) leader = f->cpu(1);
        for (auto& r : ranks) BANYAN_CHECK(seal(r, step));
        const auto start = clock_type::now();
        for (auto& r : ranks)
            BANYAN_CHECK(wait_until(r, fmt::format("the commit of step {}", step),
                                    [&](auto& h) { return h.memory_step.load() >= step + 1; }));
        const auto took = std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
        if (step == 1) first = took;
        if (step > warm_up) times.push_back(took);
    }
    leader = (f->cpu(1) - leader) / static_cast<double>(plan.steps) * 1000;
    std::sort(times.begin(), times.end());
    const auto what = fmt::format("commit of a step, {} daemons, {} ranks, {} cores", plan.nodes,
                                  request.world, ::sysconf(_SC_NPROCESSORS_ONLN));
    out.add(what + ", the launch's first", first, "ms", "-");
    out.add(what + ", median", median(times), "ms", "-");
    out.add(what + ", p99", times[(times.size() * 99 + 99) / 100 - 1], "ms", "-", "<=", 200);
    out.add(what + ", CPU of the leader", leader, "ms", "-", "<=", 5);
    return {};
}

}  // namespace banyan::bench
