// SPDX-License-Identifier: BSD-3-Clause
//
// What a process hears and says by its shared page: a free buffer, how far a step is, a heartbeat. And which
// step is to stay in storage.
#include <chrono>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckptd/client/client.hpp"
#include "ckptd/protocol/state_name.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds milestone_timeout{60};  // storage takes a file

// Sleeps until the daemon changes something in the header, or a short time has passed. The header need not be
// there any more: the kernel then says so at once.
void wait_for_change(rank_memory_header& header, std::uint32_t seen, clock::duration at_most) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(at_most);
    const timespec time{whole.count(), (at_most - whole).count()};
    ::syscall(SYS_futex, &header.event, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace

int unlocked_client::free_buffer() {
    const auto until = clock::now() + buffer_timeout_;
    auto& header = daemon_.link.header();
    // A daemon that stands still is waited for once, and then when it has been heard again.
    const auto beat = header.beat.load();
    for (;;) {
        const auto seen = header.event.load();
        for (std::uint32_t i = 0; i < daemon_.link.buffers(); ++i)
            if (buffer_is_free(header.buffer[i])) return static_cast<int>(i);
        const bool is_late = clock::now() >= until;
        if (is_late && buffer_timeout_ >= std::chrono::seconds(1) && header.beat.load() == beat)
            hung_at_ = beat;
        if (hung_at_ != 0 && header.beat.load() == hung_at_) return -1;
        if (is_late || header.stalled.load() != 0 || past_.is_behind(daemon_.link) || !daemon_.link.alive())
            return -1;
        wait_for_change(header, seen, clock::before_next_look(std::chrono::milliseconds(20)));
    }
}

bool client::seal_requested() {
    const std::unique_lock turn(lock_, std::try_to_lock);
    return turn && usable().code == 0 && daemon_.link.attached() &&
           daemon_.link.header().seals_wanted.load() > past_.seals_answered;
}

void client::heartbeat(std::uint64_t step, std::uint32_t phase) {
    const std::unique_lock turn(lock_, std::try_to_lock);
    if (turn && usable().code == 0 && daemon_.link.attached()) beat(step, phase);
}

void unlocked_client::beat(std::uint64_t step, std::uint32_t phase) {
    write_beat(daemon_.link.header().rank_beat, step, phase,
               static_cast<std::uint64_t>(clock::now().time_since_epoch().count()));
}

// Of a program that has no heartbeats: the saves are all that it says.
void unlocked_client::beat_of_save(std::uint64_t step) {
    const auto& beat_so_far = daemon_.link.header().rank_beat;
    const bool by_saves = beat_so_far.at_ns.load() == 0 || beat_so_far.phase.load() == phase_of_saves;
    if (who_.state.empty() && by_saves) beat(step, phase_of_saves);
}

outcome client::milestone(std::uint64_t step, const char* name) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (!name) return {BCK_E_INVALID, "name is NULL"};
    if (const auto good = check_state_name(name); !good) return {BCK_E_INVALID, good.error().text()};
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    if (auto r = usable(); r.code != 0) return r;
    if (begun_) return check_step(0);  // the answer may have to be asked of another daemon
    if (const auto never = daemon_.link.never_reaches(BCK_DURABLE); !never.empty())
        return {BCK_E_INVALID, std::string(never)};
    if (!daemon_.link.attached()) return {BCK_E_NODAEMON, daemon_.off_because()};
    nlohmann::json none;
    return daemon_.ask(message::milestone, {{"step", step}, {"name", name}}, milestone_timeout, &none);
}

outcome client::wait(std::uint64_t step, int level, int timeout_ms) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (level < BCK_SEALED || level > BCK_DURABLE)
        return {BCK_E_INVALID, fmt::format("there is no level {}", level)};
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    if (const auto never = daemon_.link.never_reaches(level); !never.empty() && usable().code == 0)
        return {BCK_E_INVALID, std::string(never)};
    const auto until =
        timeout_ms < 0 ? clock::time_point::max() : clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        // Another thread may have called anything meanwhile.
        if (auto r = usable(); r.code != 0) return r;
        if (!daemon_.link.attached()) return {BCK_E_NODAEMON, daemon_.off_because()};
        auto& header = daemon_.link.header();
        const auto seen = header.event.load();
        std::uint64_t reached = level == BCK_SEALED       ? past_.sealed
                                : level == BCK_MEMORY     ? header.memory_step.load()
                                : level == BCK_REPLICATED ? header.replicated_step.load()
                                                          : header.durable_step.load();
        // Above what was saved since there is only what this process began from.
        if (past_.saved && reached > *past_.saved + 1) reached = 0;
        if (past_.is_behind(daemon_.link)) return behind(past_.unanswered);
        if (reached >= step + 1) return {};
        if (clock::now() >= until)
            return {BCK_E_TIMEOUT,
                    fmt::format("step {} did not become that safe in {} ms", step, timeout_ms)};
        if (!daemon_.link.alive()) {
            if (auto r = daemon_.come_back(); r.code != 0) return r;
            continue;
        }
        // What is waited for may be another thread's save.
        turn.unlock();
        wait_for_change(header, seen, clock::before_next_look(std::chrono::milliseconds(20)));
        turn.lock();
    }
}

}  // namespace banyan::ckpt
