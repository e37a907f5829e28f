// SPDX-License-Identifier: BSD-3-Clause
//
// bck_restart_query and bck_restart; and who may not save before the second one.
#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/client/client.hpp"
#include "ckptd/client/words.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::minutes restore_timeout{10};  // until all ranks can have their state
constexpr int most_rounds = 16;                      // that other ranks begin while this one takes its state
constexpr std::chrono::minutes answer_timeout{2};    // one answer; the daemon may have to fill a buffer first

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
