// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/step_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ckptd/buffers/chunks.hpp"
#include "common/crc32c.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_kept = 8;  // chunks, so that parts of several shards may be read in turn
/// What a damaged step could make of a tensor's parts, not what a job does.
constexpr std::size_t most_missing = 100'000;

block block_of(const region& r) { return {r.part->begin, r.shape}; }

std::string extents(const std::vector<std::uint64_t>& of) { return fmt::format("[{}]", fmt::join(of, ",")); }

}  // namespace

step_reader::step_reader(std::unique_ptr<step_source> from) : from_(std::move(from)) {
    for (std::uint32_t rank = 0; rank < world(); ++rank) unread_.insert(unread_.end(), rank);
}

result<const shard_file*> step_reader::shard(std::uint32_t rank) {
    if (rank >= world())
        return fail(errc::invalid_input,
                    fmt::format("rank {} is not one of the {} of step {}", rank, world(), step()));
    BANYAN_TRY(const auto* of, from_->shard(rank));
    if (!of) return fail(errc::not_found, fmt::format("nobody has rank {}'s shard of step {}", rank, step()));
    if (of->chunks.size() != chunk_count(of->bytes))
        return fail(errc::invalid_input, fmt::format("{} lacks checksums", from_->name_of(rank)));
    return of;
}

result<void> step_reader::load(const shard_file& of, std::size_t chunk, std::span<std::byte> into) {
    BANYAN_CHECK(from_->read(of, chunk, into));
    if (crc32c(into) == of.chunks[chunk]) return {};
    return fail(
        errc::invalid_input,
        fmt::format("{} is damaged: checksum of its chunk {} differs", from_->name_of(of.rank), chunk),
        "the step is damaged");
}

result<const step_reader::kept_chunk*> step_reader::kept(const shard_file& of, std::size_t chunk,
                                                         std::size_t bytes) {
    const auto known =
        std::ranges::find_if(kept_, [&](const auto& k) { return k.rank == of.rank && k.number == chunk; });
    if (known != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, known);
        return &kept_.front();
    }
    kept_chunk fresh;
    if (kept_.size() == most_kept) {
        fresh = std::move(kept_.back());
        kept_.pop_back();
    }
    fresh.rank = of.rank;
    fresh.number = chunk;
    fresh.bytes.resize(bytes);
    BANYAN_CHECK(load(of, chunk, fresh.bytes));
    kept_.push_front(std::move(fresh));
    return &kept_.front();
}

// A chunk that is wanted whole comes to its place at once.
result<void> step_reader::read(std::uint32_t rank, std::uint64_t at, std::span<std::byte> into) {
    BANYAN_TRY(const auto* of, shard(rank));
    if (at > of->bytes || into.size() > of->bytes - at)
        return fail(errc::invalid_input,
                    fmt::format("{} ends before byte {}", from_->name_of(rank), at + into.size()));
    while (!into.empty()) {
        const std::size_t chunk = at / chunk_bytes, inside = at % chunk_bytes;
        const auto bytes = std::min<std::uint64_t>(chunk_bytes, of->bytes - chunk * chunk_bytes);
        const auto some = std::min<std::uint64_t>(bytes - inside, into.size());
        if (some == bytes) {
            BANYAN_CHECK(load(*of, chunk, into.first(some)));
        } else {
            BANYAN_TRY(const auto* from, kept(*of, chunk, bytes));
            std::memcpy(into.data(), from->bytes.data() + inside, some);
        }
        at += some;
        into = into.subspan(some);
    }
    return {};
}

result<const image_contents*> step_reader::contents(std::uint32_t rank) {
    if (const auto known = contents_.find(rank); known != contents_.end()) return known->second.get();
    BANYAN_TRY(const auto* of, shard(rank));
    BANYAN_TRY(auto has, read_contents(*of));
    if (of->pieces_in) {
        BANYAN_TRY(const auto* from, shard(*of->pieces_in));
        if (from->pieces_in)
            return fail(errc::invalid_input, fmt::format("{} has not the parts of tensors of rank {}",
                                                         from_->name_of(from->rank), rank));
        BANYAN_TRY(const auto* others, contents(*of->pieces_in));
        std::ranges::copy_if(others->regions, std::back_inserter(has.regions),
                             [](const auto& r) { return r.part.has_value(); });
    }
    return contents_.emplace(rank, std::make_unique<image_contents>(std::move(has))).first->second.get();
}

result<image_contents> step_reader::read_contents(const shard_file& of) {
    const auto rank = of.rank;
    std::array<std::byte, 8> start{};
    if (of.bytes < start.size())
        return fail(errc::invalid_input, fmt::format("rank {}'s shard is too short", rank));
    BANYAN_CHECK(read(rank, 0, start));
    BANYAN_TRY(const auto length, header_bytes_of(start, of.bytes));
    std::string json(length, '\0');
    BANYAN_CHECK(read(rank, start.size(), std::as_writable_bytes(std::span(json))));
    BANYAN_TRY(auto has, read_header(json, of.bytes));
    if (has.step != step() || has.rank != rank || has.world != world())
        return fail(errc::invalid_input, fmt::format("rank {}'s shard is of step {}, rank {} of {}", rank,
                                                     has.step, has.rank, has.world));
    return has;
}

// Of the ranks that nobody has looked at yet the one nearest to where `wanted` lies in its tensor, as ranks
// divide one from the first to the last: most often it has all, and no other header is read.
std::optional<std::uint32_t> step_reader::next_to(const region& wanted) const {
    if (unread_.empty()) return std::nullopt;
    double at = 0, of = 1;
    for (std::size_t i = 0; i < wanted.shape.size(); ++i) {
        const auto extent = static_cast<double>(wanted.part->global_shape[i]);
        at = at * extent + static_cast<double>(wanted.part->begin[i]);
        of *= extent;
    }
    const auto guess = static_cast<std::uint32_t>(of > 0 ? at / of * world() : 0);
    const auto behind = unread_.lower_bound(guess);
    if (behind == unread_.begin()) return *behind;
    const auto before = std::prev(behind);
    if (behind == unread_.end()) return *before;
    return *behind - guess <= guess - *before ? *behind : *before;
}

result<void> step_reader::read_pieces(std::uint32_t rank) {
    unread_.erase(rank);
    const auto of = shard(rank);
    if (!of && of.error().code == errc::not_found) return {};  // others may have the same parts
    if (!of) return std::unexpected(of.error());
    if ((*of)->pieces_in) return {};
    BANYAN_TRY(const auto* has, contents(rank));
    for (const auto& r : has->regions)
        if (r.part) tensors_[r.name].push_back({rank, &r});
    return {};
}

result<void> step_reader::fill(const region& wanted, std::uint32_t rank, std::span<std::byte> into) {
    if (wanted.part) return fill_part(wanted, into);
    BANYAN_TRY(const auto* has, contents(rank));
    const auto found = std::ranges::find(has->regions, wanted.name, &region::name);
    if (found == has->regions.end() || found->dtype != wanted.dtype || found->shape != wanted.shape)
        return fail(errc::conflict,
                    fmt::format("region \"{}\" is not in step {} of rank {} with this dtype and shape",
                                printable(wanted.name), step(), rank));
    BANYAN_TRY(const auto* of, shard(rank));
    return read(found->part ? of->pieces_in.value_or(rank) : rank, found->offset, into);
}

result<void> step_reader::fill_part(const region& wanted, std::span<std::byte> into) {
    const auto about = [&](const std::string& what) {
        return fail(errc::conflict, fmt::format("tensor \"{}\" {}", printable(wanted.name), what));
    };
    const auto to = block_of(wanted);
    std::vector<block> missing;
    if (volume(to) != 0) missing.push_back(to);
    const auto& pieces = tensors_[wanted.name];
    for (std::size_t i = 0;; ++i) {
        while (i == pieces.size()) {
            const auto rank = next_to(wanted);
            if (!rank) break;
            BANYAN_CHECK(read_pieces(*rank));
        }
        if (i == pieces.size()) break;
        const auto& one = pieces[i];
        if (one.of->dtype != wanted.dtype || one.of->part->global_shape != wanted.part->global_shape)
            return about(fmt::format("is {} {} in step {}, not {} {}", one.of->dtype,
                                     extents(one.of->part->global_shape), step(), wanted.dtype,
                                     extents(wanted.part->global_shape)));
        std::vector<block> left;
        for (auto& m : missing) {
            const auto shared = common(block_of(*one.of), m);
            if (!shared) {
                left.push_back(std::move(m));
                continue;
            }
            if (!into.empty()) BANYAN_CHECK(copy(one, to, *shared, into));
            std::ranges::move(without(m, *shared), std::back_inserter(left));
        }
        missing = std::move(left);
        if (missing.empty()) return {};
        if (missing.size() > most_missing) return about("lies in too many parts");
    }
    if (pieces.empty()) return about(fmt::format("is not in step {}", step()));
    return about(fmt::format("has no part at {} in step {}: no rank saved it", extents(missing.front().begin),
                             step()));
}

result<void> step_reader::copy(const piece& from, const block& to, const block& shared,
                               std::span<std::byte> into) {
    result<void> done;
    for_each_run(block_of(*from.of), to, shared, dtype_bytes(from.of->dtype), [&](const run& r) {
        done = read(from.rank, from.of->offset + r.from, into.subspan(r.to, r.bytes));
        return done.has_value();
    });
    return done;
}

}  // namespace banyan::ckpt
