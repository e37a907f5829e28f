// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/reading.hpp"

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/client/device.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

outcome fill(step_reader& from, std::uint32_t rank, const region& wanted, const place& to) {
    const auto read = [&](std::span<std::byte> into) -> outcome {
        const auto done = from.fill(wanted, rank, into);
        if (done) return {};
        auto out = unread(done.error());
        if (out.code != BCK_E_LAYOUT)  // which names it
            out.text = fmt::format("region \"{}\": {}", printable(wanted.name), out.text);
        return out;
    };
    if (!to.on_device) return read({static_cast<std::byte*>(to.ptr), wanted.bytes});
    std::vector<std::byte> host(wanted.bytes);
    if (auto r = read(host); r.code != 0) return r;
    if (auto copied = device::copy_from_host(to.ptr, host.data(), host.size()); !copied)
        return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", wanted.name, copied.error().text())};
    return {};
}

// Nothing is filled before all is known to be there.
outcome fill_from_others(step_reader& from, const region_table& into) {
    for (std::size_t i = 0; i < into.size(); ++i) {
        const auto& r = into.at(i);
        if (!r.part && r.bytes != 0)
            return {BCK_E_LAYOUT,
                    fmt::format("step {} is of {} ranks, and region \"{}\" does not say which part of which "
                                "tensor it is (bck_protect_piece)",
                                from.step(), from.world(), printable(r.name))};
        if (r.part)
            if (auto there = from.has(r); !there) return unread(there.error());
    }
    return fill_all(from, 0, into);
}

}  // namespace

// Never BCK_E_NOTFOUND, after which a training would begin anew.
outcome unread(const error& e) {
    switch (e.code) {
        case errc::not_found:
        case errc::conflict:
            return {BCK_E_LAYOUT, e.text()};
        case errc::exhausted:
            return {BCK_E_MEMORY, e.text()};
        default:
            return {BCK_E_REFUSED, e.text()};
    }
}

outcome fill_all(step_reader& from, std::uint32_t rank, const region_table& into) {
    for (std::size_t i = 0; i < into.size(); ++i)
        if (auto done = fill(from, rank, into.at(i), into.place_of(i)); done.code != 0) return done;
    return {};
}

outcome fill_in_any_world(step_reader& from, std::uint32_t rank, std::uint32_t world,
                          const region_table& into) {
    if (from.world() != world) return fill_from_others(from, into);
    const auto own = from.contents(rank);
    if (!own && own.error().code != errc::not_found) return unread(own.error());
    if (!own) return fill_all(from, rank, into);
    std::vector<std::uint64_t> offsets;
    if (auto found = into.find_in(**own, &offsets); found.code != 0) return found;
    // As this rank has saved it, whether it said then which part it is or not.
    for (std::size_t i = 0; i < into.size(); ++i) {
        auto wanted = into.at(i);
        wanted.part.reset();
        if (auto done = fill(from, rank, wanted, into.place_of(i)); done.code != 0) return done;
    }
    return {};
}

result<job_step::description> job_step::described(const nlohmann::json& reply, std::uint64_t job,
                                                  std::uint32_t world) {
    const json_fields in(reply);
    description out;
    out.job = job;
    BANYAN_CHECK(in.may("key_generation", out.generation));
    BANYAN_TRY(out.step, in.number("step", max_step));
    out.world = world;
    BANYAN_CHECK(in.may("world", out.world));
    BANYAN_CHECK(in.may("dir", out.dir));
    return out;
}

nlohmann::json job_step::question_about(std::uint32_t rank) const {
    return {{"rank", rank}, {"key_generation", what_.generation}, {"step", what_.step}};
}

job_step::saver job_step::saved_by() const { return {what_.job, what_.generation}; }

result<step_source*> job_step::stored() {
    if (stored_) return stored_.get();
    BANYAN_TRY(auto found, open_stored_step(what_.dir, what_.step));
    // A step of that number may be another one: of an older round, or of a job before this one.
    const auto by = found->saved_by();
    const bool is_it = what_.generation != 0 ? by.job == what_.job && by.generation == what_.generation
                                             : by.job != what_.job;
    if (!is_it || found->world() != what_.world)
        return fail(errc::conflict, fmt::format("step {} in {} is not the one from which the ranks began",
                                                what_.step, what_.dir));
    stored_ = std::move(found);
    return stored_.get();
}

result<job_step::known> job_step::look(std::uint32_t rank) {
    BANYAN_TRY(const auto said, ask_(message::look, question_about(rank), {}));
    const json_fields in(said);
    known out;
    out.file.rank = rank;
    if (in.has("bytes")) {
        BANYAN_TRY(out.file.bytes, in.number("bytes", 1ull << 48));
        BANYAN_TRY(out.file.chunks, in.numbers("chunks", chunk_count(out.file.bytes)));
        return out;
    }
    out.is_anywhere = !what_.dir.empty();
    if (!out.is_anywhere) return out;
    const auto from = stored();
    out.is_anywhere = from.has_value();
    // That nobody has it is to be seen, not taken from silence.
    if (!from && !was_seen(from.error())) return std::unexpected(from.error());
    if (!from) return out;
    BANYAN_TRY(const auto* file, (*from)->shard(rank));
    out.file = *file;
    out.is_stored = true;
    return out;
}

result<const shard_file*> job_step::shard(std::uint32_t rank) {
    auto at = shards_.find(rank);
    if (at == shards_.end()) {
        BANYAN_TRY(auto found, look(rank));
        at = shards_.emplace(rank, std::move(found)).first;
    }
    return at->second.is_anywhere ? &at->second.file : nullptr;
}

result<void> job_step::read(const shard_file& of, std::size_t chunk, std::span<std::byte> into) {
    if (shards_.at(of.rank).is_stored) {
        BANYAN_TRY(auto* const from, stored());
        return from->read(of, chunk, into);
    }
    auto meta = question_about(of.rank);
    meta["chunk"] = chunk;
    meta["bytes"] = into.size();
    BANYAN_TRY([[maybe_unused]] const auto said, ask_(message::read, meta, into));
    return {};
}

std::string job_step::name_of(std::uint32_t rank) const {
    return fmt::format("rank {}'s shard of step {}", rank, what_.step);
}

}  // namespace banyan::ckpt
