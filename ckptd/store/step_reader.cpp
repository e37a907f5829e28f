// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/step_reader.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_open = 8;
/// What a damaged step could make of a tensor's parts, not what a job does.
constexpr std::size_t most_missing = 100'000;

block block_of(const region& r) { return {r.part->begin, r.shape}; }

std::string extents(const std::vector<std::uint64_t>& of) { return fmt::format("[{}]", fmt::join(of, ",")); }

}  // namespace

result<step_reader> step_reader::open(const std::string& dir, std::optional<std::uint64_t> step) {
    step_reader out;
    out.dir_ = dir;
    if (!step) {
        BANYAN_TRY(const auto steps, list_steps(myself(), dir));
        if (steps.empty()) return fail(errc::not_found, fmt::format("there is no step in {}", dir));
        step = steps.front();
    }
    const auto keep = [&](const shard_file& file) { out.files_.push_back(file); };
    BANYAN_TRY(out.summary_, scan_step(myself(), dir, *step, 0, keep));
    return out;
}

result<shard_reader*> step_reader::shard(std::uint32_t rank) {
    auto known = std::ranges::find(open_, rank, [](const auto& one) { return one.first; });
    if (known == open_.end()) {
        BANYAN_TRY(auto fresh, shard_reader::open(dir_, summary_.step, files_[rank]));
        open_.emplace_front(rank, std::move(fresh));
        if (open_.size() > most_open) open_.pop_back();
    } else {
        open_.splice(open_.begin(), open_, known);
    }
    return &open_.front().second;
}

result<const image_contents*> step_reader::contents(std::uint32_t rank) {
    if (rank >= files_.size())
        return fail(errc::invalid_input,
                    fmt::format("rank {} is not one of the {} of step {}", rank, files_.size(), step()));
    auto& known = contents_[rank];
    if (known) return known.get();
    const auto bytes = files_[rank].bytes;
    std::array<std::byte, 8> start{};
    if (bytes < start.size())
        return fail(errc::invalid_input, fmt::format("rank {}'s shard is too short", rank));
    BANYAN_TRY(auto* const from, shard(rank));
    BANYAN_CHECK(from->read(0, start));
    BANYAN_TRY(const auto length, header_bytes_of(start, bytes));
    std::string json(length, '\0');
    BANYAN_CHECK(from->read(start.size(), std::as_writable_bytes(std::span(json))));
    BANYAN_TRY(auto read, read_header(json, bytes));
    if (read.step != step() || read.rank != rank)
        return fail(errc::invalid_input,
                    fmt::format("rank {}'s shard is of step {}, rank {}", rank, read.step, read.rank));
    known = std::make_unique<image_contents>(std::move(read));
    return known.get();
}

result<const std::vector<step_reader::piece>*> step_reader::pieces_of(const std::string& name) {
    static const std::vector<piece> none;
    if (!tensors_) {
        std::unordered_map<std::string, std::vector<piece>> made;
        for (std::uint32_t rank = 0; rank < files_.size(); ++rank) {
            BANYAN_TRY(const auto* has, contents(rank));
            for (const auto& r : has->regions)
                if (r.part) made[r.name].push_back({rank, &r});
        }
        tensors_ = std::move(made);
    }
    const auto found = tensors_->find(name);
    return found == tensors_->end() ? &none : &found->second;
}

result<void> step_reader::fill(const region& wanted, std::uint32_t rank, std::span<std::byte> into) {
    if (wanted.part) return fill_part(wanted, into);
    BANYAN_TRY(const auto* has, contents(rank));
    const auto found = std::ranges::find(has->regions, wanted.name, &region::name);
    if (found == has->regions.end() || found->dtype != wanted.dtype || found->shape != wanted.shape)
        return fail(errc::conflict,
                    fmt::format("region \"{}\" is not in step {} of rank {} with this dtype and shape",
                                printable(wanted.name), step(), rank));
    BANYAN_TRY(auto* const from, shard(rank));
    return from->read(found->offset, into);
}

result<void> step_reader::fill_part(const region& wanted, std::span<std::byte> into) {
    const auto about = [&](const std::string& what) {
        return fail(errc::conflict, fmt::format("tensor \"{}\" {}", printable(wanted.name), what));
    };
    BANYAN_TRY(const auto* pieces, pieces_of(wanted.name));
    if (pieces->empty()) return about(fmt::format("is not in step {}", step()));
    const auto to = block_of(wanted);
    std::vector<block> missing;
    if (volume(to) != 0) missing.push_back(to);
    for (const auto& one : *pieces) {
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
            BANYAN_CHECK(copy(one, to, *shared, into));
            std::ranges::move(without(m, *shared), std::back_inserter(left));
        }
        missing = std::move(left);
        if (missing.size() > most_missing) return about("lies in too many parts");
    }
    if (missing.empty()) return {};
    return about(fmt::format("has no part at {} in step {}: no rank saved it", extents(missing.front().begin),
                             step()));
}

result<void> step_reader::copy(const piece& from, const block& to, const block& shared,
                               std::span<std::byte> into) {
    BANYAN_TRY(auto* const shard_of, shard(from.rank));
    result<void> done;
    for_each_run(block_of(*from.of), to, shared, dtype_bytes(from.of->dtype), [&](const run& r) {
        done = shard_of->read(from.of->offset + r.from, into.subspan(r.to, r.bytes));
        return done.has_value();
    });
    return done;
}

}  // namespace banyan::ckpt
