// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/rank_buffers.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ckptd/daemon/holes.hpp"
#include "ckptd/daemon/in_the_making.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t header_allowance = 256 * 1024;
constexpr milliseconds look_again_for_room{50};

// What nobody has seen and nothing lies in: it need not be there beside the other one.
void let_go_of_unused(daemon_core& core, const session_ptr& s, rank_state& r) {
    if (!r.memory) return;
    const auto files = files_of(r.memory);
    if (std::any_of(files.begin(), files.end(), [](const auto& f) { return f->shared(); })) return;
    if (std::any_of(s->copies.begin(), s->copies.end(),
                    [&](const auto& c) { return c->memory->shares_with(r.memory.get()); }))
        return;
    const auto unused = std::exchange(r.memory, nullptr);
    r.buffers = 0;
    r.buffer_bytes = 0;
    core.keep(s);  // and only then may it go
}

// What the job has, of each of its states where there are several.
std::string memory_in_words(const daemon_core& core, const session& s) {
    auto all = format_bytes(core.memory_of_job(s));
    const auto job = core.find_session(s.job());
    if (!job || job->states.empty()) return all;
    auto each = fmt::format("{} without a name", format_bytes(job->memory_bytes()));
    for (const auto& [name, state] : job->states)
        each += fmt::format(", {} of state {}", format_bytes(state->memory_bytes()), name);
    return fmt::format("{} ({})", all, each);
}

bool can_grow(const std::shared_ptr<shard_memory>& m) { return m && files_of(m).size() < max_parts; }

}  // namespace

task<result<void>> rank_buffers::ensure(session_ptr s, std::uint32_t rank, std::uint64_t bytes, bool huge) {
    const auto held = co_await s->memory_lock->acquire();
    auto& r = s->ranks[rank];
    give_up_holed(users_, s, rank);
    const bool fits = r.memory && r.buffers == s->request.buffers && (huge || !r.memory->is_reserved());
    if (fits && r.buffer_bytes >= round_to_page(bytes)) co_return result<void>{};
    const std::uint32_t buffers = s->request.buffers;
    const joined_shape shape{page_bytes, buffers};
    const auto name = fmt::format("banyan-buffers-{}-{}", s->job(), rank);
    const auto from = fits && can_grow(r.memory) ? r.memory : nullptr;
    if (!from) let_go_of_unused(core_, s, r);
    if (!s->detached) BANYAN_CO_CHECK(ended_.make_descriptor(*s));
    const auto more = from ? round_up(bytes, from->unit()) - r.buffer_bytes : 0;
    const auto wanted = from ? buffers * more : bytes_of(shape, round_to_page(bytes));
    const auto limit = core_.config.job_limit();
    const auto is_short = [&] { return wanted > limit || core_.memory_of_job(*s) > limit - wanted; };
    // What no copy has come into yet gives way, and so does what is being made for one.
    while (is_short()) {
        s->free_replicas.clear();
        if (!is_short() || s->expected.empty() || s->closed) break;
        co_await s->changed->wait(clock::now() + look_again_for_room);
    }
    if (is_short())
        co_return fail(
            errc::exhausted,
            fmt::format("rank {} needs {} more, but job {} has {} of its {} on this node", rank,
                        format_bytes(wanted), s->job(), memory_in_words(core_, *s), format_bytes(limit)),
            core_.config.to_raise_job_limit());
    auto budget = core_.budget;
    const auto most = huge ? limit - core_.memory_of_job(*s) : 0;
    std::optional<in_the_making> counted(
        std::in_place, s, from ? wanted : shard_memory::bytes_to_make(*budget, shape, bytes, most));
    const auto work = [budget, name, shape, bytes, from, more, most] {
        return from ? shard_memory::grow(from, shape, name, more)
                    : shard_memory::make(budget, name, shape, bytes, most);
    };
    auto made = co_await core_.compute.run(s->request.uid, work);
    if (!made && made.error().code == errc::exhausted && !s->free_replicas.empty()) {
        s->free_replicas.clear();
        made = co_await core_.compute.run(s->request.uid, work);
    }
    // For a job that has left nobody else's memory is taken.
    while (!made && made.error().code == errc::exhausted && !s->closed && !s->detached) {
        const bool there_is_room = co_await ended_.make_room(wanted);
        if (!there_is_room) break;
        made = co_await core_.compute.run(s->request.uid, work);
    }
    BANYAN_CO_TRY(auto memory, std::move(made));
    if (!from) {
        auto& header = *new (memory->data()) rank_memory_header{};
        header.magic = rank_memory_magic();
        header.buffers = buffers;
        header.rank = rank;
        header.job = s->job();
        // Copies in the old memory live on until a newer step is complete; nobody writes there any more.
        for (const auto& c : s->copies)
            if (c->rank == rank && c->memory->shares_with(s->ranks[rank].memory.get())) c->buffer = -1;
    }
    const auto buffer_bytes = (memory->size() - page_bytes) / buffers;
    reinterpret_cast<rank_memory_header*>(memory->data())->buffer_bytes = buffer_bytes;
    auto& target = s->ranks[rank];
    const auto before = std::exchange(target.memory, std::move(memory));
    counted.reset();
    target.buffers = buffers;
    target.buffer_bytes = buffer_bytes;
    core_.keep(s);  // and only then may the one before go
    co_return result<void>{};
}

task<result<void>> rank_buffers::make_ready(session_ptr s, std::vector<std::uint32_t> ranks) {
    if (s->request.bytes == 0) co_return result<void>{};
    for (const auto rank : ranks)
        BANYAN_CO_CHECK(co_await ensure(s, rank, s->request.bytes + header_allowance));
    co_return result<void>{};
}

task<result<std::shared_ptr<shard_memory>>> rank_buffers::replica_memory(
    session_ptr s, std::uint32_t rank, std::uint64_t bytes, std::shared_ptr<shard_memory> smaller) {
    const auto name = fmt::format("banyan-replica-{}-{}", s->job(), rank);
    if (!can_grow(smaller)) smaller.reset();
    const auto size = smaller ? round_up(bytes, smaller->unit()) - smaller->size() : round_to_page(bytes);
    const auto limit = core_.config.job_limit(), used = core_.memory_of_job(*s);
    if (size > limit || used > limit - size)
        co_return fail(
            errc::exhausted,
            fmt::format("a copy of {} and what job {} has on node {} are more than the {} of a job there",
                        format_bytes(size), s->job(), core_.config.node, format_bytes(limit)),
            core_.config.to_raise_job_limit());
    if (!s->detached) BANYAN_CO_CHECK(ended_.make_descriptor(*s));
    const auto most = limit - used;
    const in_the_making counted(s,
                                smaller ? size : shard_memory::bytes_to_make(*core_.budget, {}, bytes, most));
    const auto work = [budget = core_.budget, name, size, smaller, bytes, most] {
        return smaller ? shard_memory::grow(smaller, {}, name, size)
                       : shard_memory::make(budget, name, {}, bytes, most);
    };
    auto made = co_await run_blocking(core_.workers, work);
    std::erase_if(s->replica_memory, [](const auto& m) { return m.expired(); });
    if (made) s->replica_memory.push_back(*made);
    co_return made;
}

task<void> rank_buffers::expect_copies(session_ptr s, std::vector<std::uint32_t> ranks) {
    if (s->request.bytes == 0) co_return;
    for (const auto rank : ranks) {
        if (s->closed) co_return;
        if (s->has_replica_memory(rank)) continue;
        s->expected.insert(rank);
        auto made = co_await replica_memory(s, rank, s->request.bytes + header_allowance);
        s->expected.erase(rank);
        s->notify();
        if (!made) {
            users_.warn(s, s->self(),
                        fmt::format("node {} does not take copies: {}", s->self(), made.error().text()));
            co_return;
        }
        if (!s->closed) s->free_replicas[rank].push_back(std::move(*made));
    }
}

}  // namespace banyan::ckpt
