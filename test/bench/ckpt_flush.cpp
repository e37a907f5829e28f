// SPDX-License-Identifier: BSD-3-Clause
//
// A flush of one large shard, from a step that is complete in memory to COMMIT in storage, against programs
// that write as many bytes into the same file system: past the page cache, and through it with fsync.
#include <algorithm>
#include <cerrno>

#include <banyan/ckpt.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/file.hpp"
#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"

namespace banyan::bench {
namespace {

constexpr std::size_t piece = 4u << 20;

/// A new file of `bytes` bytes, durable. Seconds.
result<double> write_file(const std::filesystem::path& path, std::span<const std::byte> from, int flags) {
    ::unlink(path.c_str());
    result<void> done;
    const auto seconds = seconds_of([&] {
        const unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600));
        if (!fd) {
            done = fail_errno(fmt::format("cannot make {}", path.string()), errno);
            return;
        }
        for (std::size_t at = 0; at < from.size() && done; at += piece)
            done = write_all(fd.get(), from.subspan(at, std::min(piece, from.size() - at)),
                             static_cast<off_t>(at), path.string());
        if (done && ::fsync(fd.get()) != 0) done = fail_errno("cannot sync", errno);
    });
    if (!done) return std::unexpected(done.error());
    return seconds;
}

}  // namespace

result<void> measure_flush(const ckpt_plan& plan, figures& out) {
    BANYAN_TRY(const auto f, fleet::start({.extra = "keep = 1\n"}));
    std::string pattern = (plan.dir / "banyan-flush-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) return fail_errno(fmt::format("cannot make {}", pattern), errno);
    const struct removing {
        std::filesystem::path dir;
        ~removing() {
            std::error_code ignored;
            std::filesystem::remove_all(dir, ignored);
        }
    } storage{pattern};
    auto request = f->request(1, 1, 1, plan.large);
    request.buffers = 2;
    request.dir = storage.dir / "steps";
    request.flush = 1;
    BANYAN_CHECK(f->open(request));
    BANYAN_TRY(auto rank, rank_process::start({f->socket(1), 1, 0, 1, plan.large}));
    BANYAN_TRY(const auto memory, warm_memory(plan.large));
    const std::span<const std::byte> bytes(memory.data(), memory.size());
    std::vector<double> flushes, direct, buffered;
    for (std::uint64_t step = 1; step <= plan.runs + 1; ++step) {
        BANYAN_CHECK(rank.ask({deed::save, step}));
        BANYAN_CHECK(rank.ask({deed::wait, step, BCK_MEMORY}));
        BANYAN_TRY(const auto flushed, rank.ask({deed::wait, step, BCK_DURABLE}));
        BANYAN_TRY(const auto past, write_file(storage.dir / "direct", bytes, O_DIRECT));
        BANYAN_TRY(const auto through, write_file(storage.dir / "buffered", bytes, 0));
        if (step == 1) continue;  // the directory's first use
        flushes.push_back(flushed.seconds);
        direct.push_back(past);
        buffered.push_back(through);
    }
    const auto what = fmt::format("flush, {}", size_text(plan.large));
    out.add(what + ", time", median(flushes) * 1000, "ms", "-");
    out.add(what, median(direct) / median(flushes), "x", "O_DIRECT writes of 4 MiB", ">=", 0.9);
    out.add(what, median(buffered) / median(flushes), "x", "buffered writes and fsync", ">=", 1.5);
    return {};
}

}  // namespace banyan::bench
