// SPDX-License-Identifier: BSD-3-Clause
//
// A node that has lost its memory gets its rank's state from its buddy, from the rank's question until it has
// it, against a program that reads as many bytes from storage past the page cache.
#include <algorithm>
#include <cerrno>

#include <banyan/ckpt.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/file.hpp"
#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"

namespace banyan::bench {
namespace {

using namespace nlohmann::literals;
constexpr std::size_t piece = 4u << 20;

/// Reads the file past the page cache into warm memory. Seconds.
result<double> read_direct(const std::string& path, std::span<std::byte> into) {
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    if (!fd) return fail_errno(fmt::format("cannot read {} past the page cache", path), errno);
    bool whole = true;
    const auto seconds = seconds_of([&] {
        for (std::size_t at = 0; at < into.size() && whole; at += piece) {
            const auto bytes = std::min(piece, into.size() - at);
            whole = ::pread(fd.get(), into.data() + at, bytes, static_cast<off_t>(at)) ==
                    static_cast<ssize_t>(bytes);
        }
    });
    if (!whole) return fail(errc::unavailable, fmt::format("cannot read all of {}", path));
    return seconds;
}

result<double> restore_once(fleet& f, const ckpt::session_request& request, std::uint32_t step,
                            std::size_t bytes) {
    {
        BANYAN_TRY(auto ranks, start_pair(f, request.job, bytes));
        BANYAN_CHECK(slowest(ranks, {deed::restart}));
        BANYAN_CHECK(slowest(ranks, {deed::save, step}));
        BANYAN_CHECK(slowest(ranks, {deed::wait, step, BCK_REPLICATED}));
    }
    f.kill_node(1);
    BANYAN_CHECK(f.start_node(1));
    BANYAN_CHECK(f.open_on(1, request));
    for (const std::uint32_t node : {1u, 2u})
        BANYAN_CHECK(ckpt::step_open(f.socket(node), {request.job, step, {f.name(1), f.name(2)}},
                                     std::chrono::seconds(10)));
    BANYAN_TRY(auto ranks, start_pair(f, request.job, bytes));
    for (auto& r : ranks) BANYAN_CHECK(r.say({deed::restart}));
    BANYAN_TRY(const auto first, ranks[0].hear());
    BANYAN_TRY(const auto second, ranks[1].hear());
    BANYAN_TRY(const auto text, ckpt::status(f.socket(1), std::chrono::seconds(5)));
    const auto status = nlohmann::json::parse(text, nullptr, false);
    const auto fetched =
        status.value("/sessions/0/counters/peer_bytes_received"_json_pointer, std::uint64_t{0});
    if (first.code != 0 || second.code != 0 || first.step != step || fetched < bytes)
        return fail(errc::unavailable, fmt::format("not from the buddy: {} ({}), step {}, {} bytes from it",
                                                   first.text, first.code, first.step, fetched));
    return first.seconds;
}

}  // namespace

result<void> measure_buddy_restore(const ckpt_plan& plan, figures& out) {
    BANYAN_TRY(const auto f, fleet::start({.nodes = 2}));
    auto request = f->request(1, 2, 1, plan.large);
    request.buffers = 2;
    BANYAN_CHECK(f->open_on(1, request));
    auto of_the_other = request;
    of_the_other.bytes = 0;  // its rank has next to nothing
    BANYAN_CHECK(f->open_on(2, of_the_other));
    {
        BANYAN_TRY(auto ranks, start_pair(*f, 1, plan.large));
        BANYAN_CHECK(look_all(ranks));
        BANYAN_CHECK(slowest(ranks, {deed::save, 1}));
        BANYAN_CHECK(slowest(ranks, {deed::wait, 1, BCK_REPLICATED}));
    }
    BANYAN_TRY(const auto memory, warm_memory(plan.large));
    const std::span<std::byte> bytes(memory.data(), memory.size());
    const auto path = (plan.dir / fmt::format("banyan-read-{}", ::getpid())).string();
    std::vector<double> restores, reads;
    result<void> whole;
    {
        const unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        whole = write_all(fd.get(), bytes, 0, path);
        ::fsync(fd.get());
    }
    for (std::uint32_t step = 2; step <= plan.runs + 1 && whole; ++step) {
        const auto read = read_direct(path, bytes);
        const auto restored = restore_once(*f, request, step, plan.large);
        if (!read)
            whole = std::unexpected(read.error());
        else if (!restored)
            whole = std::unexpected(restored.error());
        else
            reads.push_back(*read), restores.push_back(*restored);
    }
    ::unlink(path.c_str());
    if (!whole) return whole;
    const auto what = fmt::format("restore from the buddy, {}", size_text(plan.large));
    out.add(what + ", time", median(restores) * 1000, "ms", "-");
    out.add(what, median(reads) / median(restores), "x", "O_DIRECT reads of 4 MiB", ">=", 1.5);
    return {};
}

}  // namespace banyan::bench
