// SPDX-License-Identifier: BSD-3-Clause
//
// bck_checkpoint, whole and in two halves.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/client/client.hpp"
#include "ckptd/client/transfer.hpp"

namespace banyan::ckpt {
namespace {

struct piece {
    std::uint64_t to = 0;
    place from;
    std::uint64_t bytes = 0;
    std::string name;  ///< of a region on a GPU
};

std::vector<piece> pieces_of(const region_table& table) {
    std::vector<piece> out(table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto& r = table.at(i);
        out[i] = {r.offset, table.place_of(i), r.bytes, table.place_of(i).on_device ? r.name : ""};
    }
    return out;
}

void put_header(std::byte* buffer, std::uint64_t step, region_table& table) {
    auto& head = table.header();
    put_step(head.text.data() + head.step_at, step);
    std::memcpy(buffer, head.text.data(), head.text.size());
}

outcome copy_piece(std::byte* buffer, std::uint64_t to, const place& from, std::uint64_t bytes,
                   std::string_view name, device::transfer& gpus) {
    if (!from.on_device) {
        copy_state(buffer + to, static_cast<const std::byte*>(from.ptr), bytes);
    } else if (auto copied = gpus.copy(buffer + to, from.ptr, bytes); !copied) {
        return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", name, copied.error().text())};
    }
    return {};
}

outcome finish(device::transfer& gpus) {
    if (auto done = gpus.finish(); !done) return {BCK_E_DEVICE, done.error().text()};
    return {};
}

// Allocates nothing where no region is on a GPU.
outcome fill(std::byte* buffer, std::uint64_t step, region_table& table) {
    put_header(buffer, step, table);
    device::transfer gpus;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto& r = table.at(i);
        if (auto done = copy_piece(buffer, r.offset, table.place_of(i), r.bytes, r.name, gpus);
            done.code != 0)
            return done;
    }
    return finish(gpus);
}

outcome fill_from(std::byte* buffer, const std::vector<piece>& pieces, device::transfer& gpus) {
    for (const auto& p : pieces)
        if (auto done = copy_piece(buffer, p.to, p.from, p.bytes, p.name, gpus); done.code != 0) return done;
    return finish(gpus);
}

}  // namespace

outcome unlocked_client::check_step(std::uint64_t step) const {
    if (begun_)
        return {BCK_E_INVALID,
                fmt::format("the save of step {} has begun: bck_checkpoint_end comes first", begun_->step)};
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    if (past_.saved && step <= *past_.saved)
        return {BCK_E_INVALID,
                fmt::format("step {} is not above step {}, which is saved already", step, *past_.saved)};
    // A state of its own may have been saved more often than the one by which the training counts.
    if (who_.state.empty() && step + 1 < past_.sealed)
        return {BCK_E_INVALID, fmt::format("step {} is below step {}, from which this process began: count "
                                           "on from there, or give the new training its own directory",
                                           step, past_.sealed - 1)};
    return {};
}

// What the arguments were wrong for may be saved yet.
outcome unlocked_client::skip(outcome why) {
    if (why.code != 0 && why.code != BCK_E_STALE && why.code != BCK_E_INVALID) daemon_.pass_over();
    daemon_.end_save();
    return why;
}

outcome client::checkpoint(std::uint64_t step, given_regions given) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (auto r = check_step(step); r.code != 0) return r;
    begun_save mine;
    if (auto r = begin_save(step, given, &mine); r.code != 0) return skip(std::move(r));
    if (auto r = fill(daemon_.link.buffer(mine.buffer), step, *mine.table); r.code != 0)
        return skip(std::move(r));
    return skip(seal(mine));
}

outcome client::begin(std::uint64_t step, given_regions given, void* stream) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (auto r = check_step(step); r.code != 0) return r;
    begun_save mine;
    if (auto r = begin_save(step, given, &mine); r.code != 0) return skip(std::move(r));
    auto* const buffer = daemon_.link.buffer(mine.buffer);
    put_header(buffer, step, *mine.table);
    const auto gpus = std::make_shared<device::transfer>(mine.table->on_a_device(), stream);
    daemon_.copying.start([=, pieces = pieces_of(*mine.table)] { return fill_from(buffer, pieces, *gpus); });
    begun_ = mine;
    return {};
}

outcome client::end() {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (!begun_) return {BCK_E_INVALID, "no save has begun: bck_checkpoint_begin"};
    const auto mine = *std::exchange(begun_, std::nullopt);
    if (auto r = usable(); r.code != 0) return r;
    const bool is_there = daemon_.copying.is_under_way();
    if (!is_there)
        return skip({BCK_E_NODAEMON,
                     fmt::format("the save of step {} has lost its memory, and is skipped", mine.step)});
    if (auto r = daemon_.copying.wait(); r.code != 0) return skip(std::move(r));
    if (past_.is_behind(daemon_.link)) return skip(behind(past_.unanswered));
    return skip(seal(mine));
}

outcome client::reserve(given_regions given) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (begun_) return check_step(0);
    region_table* table = nullptr;
    return ready(given, &table);
}

outcome unlocked_client::ready(const given_regions& given, region_table** table, bool asks) {
    *table = &regions_;
    if (given && !given->data() && !given->empty()) return {BCK_E_INVALID, "tensors is NULL"};
    if (auto r = usable(); r.code != 0) return r;
    if (!given && regions_.empty()) return {BCK_E_INVALID, "no region is protected"};
    if (auto r = daemon_.reach(asks); r.code != 0) return r;
    if (given)
        if (auto r = given_.find(*given, regions_, table); r.code != 0) {
            if (r.code == BCK_E_DEVICE) daemon_.hold_place();  // the save is skipped
            return r;
        }
    if (auto made = (*table)->make_header(who_.job, who_.rank, who_.world); !made)
        return {BCK_E_INVALID, made.error().text()};
    if (auto r = daemon_.attach_for((*table)->header().image_bytes, !asks); r.code != 0) return r;
    if (!asks) daemon_.pin(**table);
    return {};
}

outcome unlocked_client::begin_save(std::uint64_t step, const given_regions& given, begun_save* begun) {
    daemon_.begin_save(step);
    region_table* table = nullptr;
    if (auto r = ready(given, &table); r.code != 0) return r;
    if (!daemon_.link.alive())
        if (auto r = daemon_.come_back(); r.code != 0) return r;
    if (past_.is_behind(daemon_.link)) return behind(past_.unanswered);
    beat_of_save(step);
    if (!past_.knows)
        if (auto r = ask_before_saving(); r.code != 0) return r;
    int buffer = free_buffer();
    if (buffer < 0 && !daemon_.link.alive()) {
        if (auto r = daemon_.come_back(); r.code != 0) return r;
        buffer = free_buffer();
    }
    if (buffer < 0 && past_.is_behind(daemon_.link)) return behind(past_.unanswered);
    if (buffer < 0) {
        daemon_.tell_warning();
        if (daemon_.link.header().stalled.load() != 0)
            return {BCK_E_BUSY,
                    fmt::format("every buffer waits for other nodes: the save of step {} is skipped", step)};
        if (hung_at_ != 0 && daemon_.link.header().beat.load() == hung_at_)
            return {BCK_E_BUSY, fmt::format("the checkpoint daemon stands still, and no buffer is free: the "
                                            "save of step {} is skipped",
                                            step)};
        return {BCK_E_BUSY, fmt::format("no buffer came free in {} ms: the save of step {} is skipped",
                                        buffer_timeout_.count(), step)};
    }
    const auto chosen = static_cast<std::size_t>(buffer);
    begin_write(daemon_.link.header().buffer[chosen]);
    *begun = {step, chosen, table->header().image_bytes, table};
    past_.seals_answered = daemon_.link.header().seals_wanted.load();
    return {};
}

outcome unlocked_client::seal(const begun_save& begun) {
    end_write(daemon_.link.header().buffer[begun.buffer], begun.step, daemon_.link.generation(), begun.bytes);
    daemon_.end_save();
    // One that is started again looks for what was sealed meanwhile.
    if (!daemon_.link.post(message::sealed, "buffer", begun.buffer))
        if (auto r = daemon_.come_back(); r.code != 0) return r;
    past_.sealed = begun.step + 1;
    past_.saved = begun.step;
    past_.has_saved = true;
    past_.has_begun = true;
    daemon_.tell_warning();
    return {};
}

}  // namespace banyan::ckpt
