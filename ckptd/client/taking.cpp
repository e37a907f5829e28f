// SPDX-License-Identifier: BSD-3-Clause
//
// A step's bytes into the process: from the buffer that the daemon has filled, or by name from whatever holds
// them; and what they are.
#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/client/client.hpp"
#include "ckptd/client/device.hpp"
#include "ckptd/client/reading.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::minutes chunk_timeout{2};  // one answer

outcome read(std::span<const std::byte> image, std::uint64_t step, std::uint32_t rank,
             image_contents* contents) {
    auto found = read_image(image);
    if (!found) return {BCK_E_LAYOUT, found.error().text()};
    if (found->step != step || found->rank != rank)
        return {BCK_E_LAYOUT, fmt::format("the shard says step {}, rank {}, expected {} and {}", found->step,
                                          found->rank, step, rank)};
    *contents = std::move(*found);
    return {};
}

// The image that the daemon has put into a buffer.
outcome find_image(const connection& of, const nlohmann::json& reply, std::uint64_t step,
                   std::span<std::byte>* image) {
    const json_fields in(reply);
    const auto buffer = in.number("buffer", of.buffers() - 1);
    const auto bytes = in.number("bytes", of.buffer_bytes());
    const auto found = in.number("step", max_step);
    if (!buffer || !bytes || !found || *found != step)
        return {BCK_E_REFUSED, "the daemon's answer makes no sense"};
    *image = {of.buffer(*buffer), *bytes};
    return {};
}

/// Into the regions of `table`, for rank `rank`. `of`: the rank that saved it, if it was another one, or one
/// of another number of ranks.
outcome take(std::span<std::byte> image, std::uint64_t step, std::uint32_t rank,
             std::optional<std::uint32_t> of, const region_table& table) {
    image_contents contents;
    if (auto r = read(image, step, of.value_or(rank), &contents); r.code != 0) return r;
    std::vector<std::uint64_t> offsets;
    if (auto found = table.find_in(contents, &offsets, of.has_value()); found.code != 0) return found;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto* from = image.data() + offsets[i];
        const auto& r = table.at(i);
        const auto& to = table.place_of(i);
        if (!to.on_device) {
            copy_state(static_cast<std::byte*>(to.ptr), from, r.bytes);
        } else if (auto copied = device::copy_from_host(to.ptr, from, r.bytes); !copied) {
            return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", r.name, copied.error().text())};
        }
    }
    return {};
}

}  // namespace

outcome client::stat(image_contents* found) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return past_.heard(look(found));
}

outcome unlocked_client::look(image_contents* found) {
    if (auto r = usable(); r.code != 0) return r;
    if (auto r = daemon_.reach(true); r.code != 0) return r;
    // The daemon would take all ranks back, as it does at bck_restart.
    if (past_.has_saved)
        return {BCK_E_INVALID,
                "this process has saved since: bck_stat comes before the first bck_checkpoint"};
    if (auto r = daemon_.attach_for(0); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask_for_state(true, &reply, regions_); asked.code != 0) return asked;
    const auto step = json_fields(reply).number("step", max_step);
    if (!step) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    const auto bytes = json_fields(reply).number("bytes", 1ull << 48).value_or(0);
    if (auto r = daemon_.attach_for(bytes); r.code != 0) return r;
    // Whoever has only looked has not gone back.
    past_.must_restart = past_.is_behind(daemon_.link);
    const auto before = daemon_.link.generation();
    if (auto asked = ask_for_state(false, &reply, regions_); asked.code != 0) return asked;
    past_.must_restart = past_.must_restart || before != daemon_.link.generation();
    if (!json_fields(reply).has("buffer")) return read_own(reply, found);
    std::span<std::byte> image;
    if (auto r = find_image(daemon_.link, reply, *step, &image); r.code != 0) return r;
    return read(image, *step,
                static_cast<std::uint32_t>(json_fields(reply).number("of", 1'048'575).value_or(who_.rank)),
                found);
}

result<nlohmann::json> unlocked_client::ask_of_step(message type, const nlohmann::json& meta,
                                                    std::span<std::byte> into) {
    nlohmann::json reply;
    const auto said = daemon_.ask(type, meta, chunk_timeout, &reply, {}, into);
    if (said.code == 0) return reply;
    return fail(errc::unavailable, said.text);
}

outcome client::open_step(std::unique_ptr<step_source>* found) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (past_.has_saved)
        return {BCK_E_INVALID,
                "this process has saved since: bck_reader_open_job comes before the first bck_checkpoint"};
    nlohmann::json reply;
    std::uint64_t step = 0;
    if (auto r = past_.heard(find(&step, &reply)); r.code != 0) return r;
    auto what = job_step::described(reply, who_.job, who_.world);
    if (!what) return unread(what.error());
    const auto in_turn = [this](message type, const nlohmann::json& meta,
                                std::span<std::byte> into) -> result<nlohmann::json> {
        std::unique_lock<std::mutex> its_turn;
        auto r = take_turn(its_turn);
        if (r.code == 0) r = usable();
        if (r.code != 0) return fail(errc::conflict, r.text);
        return ask_of_step(type, meta, into);
    };
    *found = std::make_unique<job_step>(std::move(*what), in_turn);
    return {};
}

result<step_reader> unlocked_client::reader_of(const nlohmann::json& reply) {
    BANYAN_TRY(auto what, job_step::described(reply, who_.job, who_.world));
    return step_reader(std::make_unique<job_step>(
        std::move(what),
        [this](message type, const auto& meta, auto into) { return ask_of_step(type, meta, into); }));
}

// It is in no buffer: other ranks' files have parts of it, or another number of ranks has saved the step.
outcome unlocked_client::read_own(const nlohmann::json& reply, image_contents* found) {
    auto all = reader_of(reply);
    if (!all) return unread(all.error());
    if (all->world() != who_.world)
        return {BCK_E_LAYOUT,
                fmt::format("step {} is of {} ranks, this job has {}: bck_reader_open_job reads it",
                            all->step(), all->world(), who_.world)};
    const auto own = all->contents(who_.rank);
    if (!own) return unread(own.error());
    *found = **own;
    return {};
}

// The shard that the daemon has put into a buffer; or, where that is not this rank's own and does not have
// what it needs, and where there is none, whatever the ranks have saved.
outcome unlocked_client::take_from(const nlohmann::json& reply, std::uint64_t step,
                                   const region_table& table) {
    const json_fields in(reply);
    std::optional<std::uint32_t> of;
    if (const auto rank = in.number("of", 1'048'575)) of = static_cast<std::uint32_t>(*rank);
    if (in.has("buffer")) {
        std::span<std::byte> image;
        if (auto r = find_image(daemon_.link, reply, step, &image); r.code != 0) return r;
        auto taken = take(image, step, who_.rank, of, table);
        if (taken.code != BCK_E_LAYOUT || !of) return taken;
    }
    auto all = reader_of(reply);
    if (!all) return unread(all.error());
    return fill_in_any_world(*all, who_.rank, who_.world, table);
}

}  // namespace banyan::ckpt
