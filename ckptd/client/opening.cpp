// SPDX-License-Identifier: BSD-3-Clause
//
// bck_init, bck_open, the regions, bck_finalize: whose state it is, and who may call.
#include <cstdlib>
#include <cstring>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/client/client.hpp"
#include "ckptd/client/words.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds drain_timeout{65};

result<std::uint64_t> number_or(const char* given, bool use_given, const char* variable, std::uint64_t max) {
    const auto text = use_given ? std::string(given) : environment(variable);
    const auto n = parse_number(text, max);
    if (!n)
        return fail(errc::invalid_input,
                    fmt::format("{} \"{}\" is not a number", use_given ? "the argument" : variable, text));
    return n;
}

outcome forked() {
    return {BCK_E_INVALID, "this process was forked: it may use the library after a bck_init of its own"};
}

}  // namespace

// What a thread of the parent's holds at fork() nobody lets go of in the child: nothing is waited for there.
outcome unlocked_client::take_turn(std::unique_lock<std::mutex>& turn) {
    turn = std::unique_lock(lock_, std::defer_lock);
    if (pid_ == ::getpid())
        turn.lock();
    else if (!turn.try_lock())
        return {BCK_E_INVALID,
                "this process was forked while another thread was in a call of the library: "
                "it can use it only after an exec"};
    return {};
}

outcome unlocked_client::usable() const {
    if (!initialised_)
        return {BCK_E_INVALID,
                who_.state.empty() ? "bck_init was not called" : "the state is not open: bck_open"};
    if (pid_ != ::getpid()) return forked();
    return {};
}

bool client::is_in_use() {
    std::unique_lock<std::mutex> turn;
    return take_turn(turn).code == 0 && initialised_ && pid_ == ::getpid();
}

outcome client::init(const char* job, int rank, int world) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    const bool job_given = job && *job && std::strcmp(job, "0") != 0;
    const auto rank_text = std::to_string(rank), world_text = std::to_string(world);
    const auto j = number_or(job, job_given, "BANYAN_JOB", UINT64_MAX);
    const auto r = number_or(rank_text.c_str(), rank >= 0, "RANK", 1'048'575);
    const auto w = number_or(world_text.c_str(), world > 0, "WORLD_SIZE", 1'048'576);
    if (pid_.exchange(::getpid()) != ::getpid()) past_ = {};
    begun_.reset();
    initialised_ = true;
    const auto socket = environment("BANYAN_CKPT_SOCKET");
    daemon_.begin(j && r && w && *r < *w ? socket : "");
    if (socket.empty())
        return daemon_.off(
            {errc::not_found, "BANYAN_CKPT_SOCKET is not set", "submit the job with --train-ckpt"});
    if (!j || !r || !w) {
        const auto& e = !j ? j.error() : !r ? r.error() : w.error();
        daemon_.off(e);
        return {BCK_E_INVALID, e.text()};
    }
    if (*r >= *w) return {BCK_E_INVALID, fmt::format("rank {} is not below the world size {}", *r, *w)};
    rank_name now{*j, {}, static_cast<std::uint32_t>(*r), static_cast<std::uint32_t>(*w), {}};
    if (const auto step = parse_number(environment("BANYAN_STEP"), UINT32_MAX - 1))
        now.step = static_cast<std::uint32_t>(*step);
    past_.become(who_, now);
    if (const auto wait_ms = parse_number(environment("BANYAN_CKPT_WAIT_MS"), 3'600'000))
        buffer_timeout_ = std::chrono::milliseconds(*wait_ms);
    return daemon_.reach(true);
}

outcome client::protect(const bck_tensor& region) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return regions_.add(region);
}

outcome client::unprotect(const char* name) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (begun_) return check_step(0);  // its memory is being read
    return regions_.withdraw(name);
}

outcome client::open(client& of, const std::string& state) {
    std::unique_lock<std::mutex> turn, turn_of_that;
    if (auto r = of.take_turn(turn_of_that); r.code != 0) return r;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (auto r = of.usable(); r.code != 0) return r;
    if (initialised_) return {};
    if (pid_.exchange(of.pid_) != of.pid_) past_ = {};
    begun_.reset();
    auto now = of.who_;
    now.state = state;
    past_.become(who_, now);
    daemon_.begin_as(of.daemon_);
    buffer_timeout_ = of.buffer_timeout_;
    initialised_ = true;
    return {};
}

void past::become(rank_name& who, const rank_name& now) {
    if (now.job != who.job || now.rank != who.rank || now.world != who.world) *this = {};
    who = now;
}

outcome client::finalize(bool drain, const std::function<void()>& meanwhile) {
    bool done = false;
    const auto once = [&] {
        if (meanwhile && !std::exchange(done, true)) meanwhile();
    };
    std::unique_lock<std::mutex> turn;
    outcome out = take_turn(turn);
    if (out.code != 0) {
        once();
        return out;
    }
    const bool was_attached = daemon_.link.attached();
    if (drain && pid_ == ::getpid() && was_attached) {
        nlohmann::json reply;
        out = daemon_.ask(message::finalize, {{"drain", true}}, drain_timeout, &reply, once);
        if (out.code == BCK_E_TIMEOUT) out.text += ": the newest step may not be in storage";
        if (const json_fields in(reply); out.code == 0 && in.has("not_stored"))
            out = {BCK_E_TIMEOUT, in.text("not_stored").value_or("the newest step is not in storage")};
        if (daemon_.link.attached()) daemon_.tell_warning();
    } else if (pid_ == ::getpid() && daemon_.link.attached()) {
        // So that what comes next is no rank's death. The answer is not waited for.
        daemon_.link.post(message::finalize, "drain", 0);
    }
    if (drain && initialised_ && pid_ == ::getpid() && !was_attached &&
        (past_.has_saved || !daemon_.link.is_open()) && (who_.state.empty() || past_.has_saved))
        out = {BCK_E_NODAEMON,
               fmt::format("nobody has said that what was saved is safe: {}", daemon_.off_because())};
    once();
    daemon_.detach();
    begun_.reset();
    initialised_ = false;
    regions_.clear();
    given_.clear();
    past_.sealed = 0;
    past_.saved.reset();
    past_.has_saved = false;
    past_.has_begun = false;
    past_.knows = false;
    return out;
}

}  // namespace banyan::ckpt
