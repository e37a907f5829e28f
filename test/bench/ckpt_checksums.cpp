// SPDX-License-Identifier: BSD-3-Clause
//
// How often a byte is summed up between the seal and its commit in storage: the daemons run with a library
// that counts what they give to ISA-L's CRC.
#include <cstring>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/file.hpp"
#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"
#include "test/built.hpp"

namespace banyan::bench {

result<void> measure_checksums(const ckpt_plan& plan, figures& out) {
    const struct folder {
        std::filesystem::path path;
        explicit folder(std::filesystem::path p) : path(std::move(p)) {
            std::filesystem::create_directory(path);
        }
        ~folder() {
            std::error_code ignored;
            std::filesystem::remove_all(path, ignored);
        }
    } dir(plan.dir / fmt::format("banyan-sums-{}", ::getpid()));
    BANYAN_TRY(const auto f,
               fleet::start({.nodes = 2,
                             .environment = {{"LD_PRELOAD", banyan::testing::built("ckpt_count_crc")},
                                             {"BANYAN_COUNT_CRC_IN", dir.path}}}));
    const auto summed = [&](std::uint32_t node) -> result<double> {
        const auto file = dir.path / std::to_string(f->pid(node));
        if (!std::filesystem::exists(file)) return 0.0;  // it is made with the first sum
        BANYAN_TRY(const auto text, read_file(file, 64));
        std::uint64_t bytes = 0;
        if (text.size() != sizeof bytes)
            return fail(errc::unavailable, "the daemon's checksums are not counted");
        std::memcpy(&bytes, text.data(), sizeof bytes);
        return static_cast<double>(bytes);
    };
    auto request = f->request(1, 2, 1, 0);
    request.dir = dir.path / "steps";
    request.flush = 1;
    BANYAN_CHECK(f->open(request));
    const std::size_t little = 64 * 1024;
    std::vector<rank_process> ranks;
    for (const std::uint32_t rank : {0u, 1u}) {
        BANYAN_TRY(auto one,
                   rank_process::start({f->socket(rank + 1), 1, rank, 2, rank == 0 ? plan.small : little}));
        ranks.push_back(std::move(one));
    }
    BANYAN_CHECK(look_all(ranks));
    BANYAN_TRY(const auto own, summed(1));
    BANYAN_TRY(const auto buddy, summed(2));
    BANYAN_CHECK(slowest(ranks, {deed::save, 1}));
    BANYAN_CHECK(slowest(ranks, {deed::wait, 1, BCK_REPLICATED}));
    BANYAN_CHECK(slowest(ranks, {deed::wait, 1, BCK_DURABLE}));
    BANYAN_TRY(const auto own_then, summed(1));
    BANYAN_TRY(const auto buddy_then, summed(2));
    if (own_then == 0) return fail(errc::unavailable, "the daemon's checksums are not counted");
    const auto times = [&](double bytes) { return bytes / static_cast<double>(plan.small); };
    out.add("checksums of a byte on its node, seal to storage", times(own_then - own), "x", "its bytes",
            "<=", 1.1);
    out.add("checksums of a byte on its buddy's node", times(buddy_then - buddy), "x", "its bytes",
            "<=", 1.1);
    return {};
}

}  // namespace banyan::bench
