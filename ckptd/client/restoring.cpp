// SPDX-License-Identifier: BSD-3-Clause
//
// bck_restart_query, bck_stat and bck_restart; and who may not save before the last of them.
#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/client/client.hpp"
#include "ckptd/client/device.hpp"
#include "ckptd/client/reading.hpp"
#include "ckptd/client/words.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::minutes restore_timeout{10};  // until all ranks can have their state
constexpr int most_rounds = 16;                      // that other ranks begin while this one takes its state
constexpr std::chrono::minutes answer_timeout{2};    // one answer; the daemon may have to fill a buffer first

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

outcome behind(bool unanswered) {
    return {BCK_E_STALE,
            unanswered
                ? "this process was not given the state that it is to begin with: bck_restart brings it, or "
                  "says that there is none"
                : "the ranks went back to an older step, because one of them was started again or asked "
                  "for its state: bck_restart brings this one there"};
}

// Whoever has begun has had its answer before.
outcome past::heard(outcome answer) {
    if (answer.code == BCK_E_NOTFOUND) {
        has_begun = true;
        knows = true;
        unanswered = false;
    } else if (answer.code != BCK_OK && !has_begun) {
        unanswered = true;
    }
    return answer;
}

void past::begin_from(std::uint64_t step) {
    sealed = step + 1;
    saved.reset();
    must_restart = false;
    unanswered = false;
    has_begun = true;
    knows = true;
}

// Once the launch has begun its daemon knows. Until then nothing that is saved counts, nor is anything lost.
outcome unlocked_client::ask_before_saving() {
    nlohmann::json reply;
    const nlohmann::json meta{{"test", true}, {"within_ms", buffer_timeout_.count()}};
    if (auto asked = daemon_.ask(message::restore, meta, answer_timeout, &reply); asked.code != 0)
        return asked;  // nothing is known: the next save asks again
    const json_fields in(reply);
    if (in.has("waits")) return {};
    if (const auto step = in.number("step", max_step)) {
        past_.unanswered = true;
        return {BCK_E_STALE,
                fmt::format("this process has not asked for its state: bck_restart brings step {}", *step)};
    }
    if (const auto generation = in.number("generation")) daemon_.link.set_generation(*generation);
    past_.knows = true;
    return {};
}

// No rank gets its state before all can. Rank 0 says what is waited for, once for each reason.
outcome unlocked_client::ask_for_state(bool test, nlohmann::json* reply, const region_table& into,
                                       bool takes_nothing) {
    // Until a rank waits for its state the daemon brings that into memory of its own, and copies it later: so
    // it is asked first, and the rank's mapping made ready while it works.
    const auto make_ready = [&] {
        daemon_.link.populate();
        daemon_.pin(into);
    };
    const auto until = clock::now() + restore_timeout;
    nlohmann::json meta = nlohmann::json::object();
    if (test) meta["test"] = true;
    if (takes_nothing) meta["nothing"] = true;
    std::string said;
    for (;;) {
        if (auto asked = daemon_.ask(message::restore, meta, answer_timeout, reply, make_ready);
            asked.code != 0) {
            if (daemon_.link.attached()) daemon_.tell_warning();  // it may say why
            return asked;
        }
        const bool was_behind = past_.is_behind(daemon_.link);
        if (const auto generation = json_fields(*reply).number("generation"))
            daemon_.link.set_generation(*generation);
        const auto why = json_fields(*reply).text("waits");
        if (!why) {
            // There is nothing to go back to: what was saved before is of a history that is over.
            if (!json_fields(*reply).has("step") && (!test || was_behind)) past_ = {};
            return {};
        }
        if (who_.rank == 0 && *why != said) say(who_, *why);
        said = *why;
        if (clock::now() >= until) return {BCK_E_TIMEOUT, *why};
    }
}

outcome client::restart_query(std::uint64_t* step) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    nlohmann::json reply;
    return past_.heard(find(step, &reply));
}

outcome unlocked_client::find(std::uint64_t* step, nlohmann::json* reply) {
    if (!step) return {BCK_E_INVALID, "step is NULL"};
    if (auto r = usable(); r.code != 0) return r;
    region_table* table = nullptr;
    if (auto r = regions_.empty() ? daemon_.reach(true) : ready({}, &table, true); r.code != 0) return r;
    if (auto r = daemon_.attach_for(0); r.code != 0) return r;
    if (auto asked = ask_for_state(true, reply, regions_); asked.code != 0) return asked;
    const auto found = json_fields(*reply).number("step", max_step);
    if (!found) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    *step = *found;
    return {};
}

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
    const auto said = daemon_.ask(type, meta, answer_timeout, &reply, {}, into);
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

outcome client::restart(std::uint64_t* step, int* source, given_regions given) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    past_.has_begun = false;
    past_.knows = false;
    past_.unanswered = true;  // also where memory runs out
    daemon_.copying.cancel();
    begun_.reset();
    return past_.heard(bring(step, source, given));
}

// A step that holds more than the regions of `table` needs more room than they do; none of it who takes
// nothing.
outcome unlocked_client::ask_for_shard(const region_table& table, nlohmann::json* reply) {
    if (table.size() == 0) return ask_for_state(false, reply, table, true);
    if (!past_.has_saved) {
        if (auto asked = ask_for_state(true, reply, table); asked.code != 0) return asked;
        const auto bytes = json_fields(*reply).number("bytes", 1ull << 48).value_or(0);
        if (auto r = daemon_.attach_for(bytes, false); r.code != 0) return r;
    }
    return ask_for_state(false, reply, table);
}

outcome unlocked_client::bring(std::uint64_t* step, int* source, const given_regions& given) {
    if (source) *source = BCK_FROM_NONE;
    region_table* table = nullptr;
    if (auto r = ready(given, &table, true); r.code != 0) return r;
    nlohmann::json reply;
    std::optional<std::uint64_t> found;
    for (int round = 0;; ++round) {
        if (auto asked = ask_for_shard(*table, &reply); asked.code != 0) return asked;
        const auto step_there = json_fields(reply).number("step", max_step);
        if (!step_there) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
        found = *step_there;
        // The round is entered, but until its state is brought this process does not train in it.
        past_.must_restart = past_.must_restart || std::exchange(past_.has_saved, false);
        auto taken = take_from(reply, *found, *table);
        if (taken.code == 0) break;
        // Another rank has taken all back meanwhile: this one begins with them.
        const bool is_over =
            daemon_.link.attached() && daemon_.link.header().round.load() != daemon_.link.generation();
        if (!is_over || round == most_rounds) return taken;
    }
    past_.begin_from(*found);
    if (step) *step = *found;
    const auto from = json_fields(reply).text("source").value_or("");
    if (source)
        *source = from == "local" ? BCK_FROM_LOCAL : from == "peer" ? BCK_FROM_PEER : BCK_FROM_STORAGE;
    return {};
}

}  // namespace banyan::ckpt
