// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/bell/bell.hpp"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include <pthread.h>

#include "common/guard.hpp"

namespace banyan::slurm {
namespace {

/// From one look to the next while something is left. A look costs microseconds under the locks, and what it
/// waits for takes seconds.
constexpr std::chrono::milliseconds between_looks{250};

}  // namespace

struct bell::state {
    explicit state(work asked) : does(std::move(asked)) {}

    const work does;
    std::mutex mutex;
    std::condition_variable changed;
    bool rung = false;
    bool has_thread = false;
    bool looking = false;  ///< has the locks
    unsigned life = 0;     ///< a thread ends with its own

    void run(unsigned mine) {
        const auto wanted = [&] { return rung || life != mine; };
        bool left = false;
        std::unique_lock lock(mutex);
        for (;;) {
            if (left)
                changed.wait_for(lock, between_looks, wanted);
            else
                changed.wait(lock, wanted);
            if (life != mine) return;
            rung = false;
            lock.unlock();
            left = look(mine);
            lock.lock();
        }
    }

    bool look(unsigned mine) {
        does.lock();
        bool left = false;
        if (set_looking(mine)) {
            left = guarded(
                "bell", [] { return false; }, [&] { return does.look(); });
            looked();
        }
        does.unlock();
        return left;
    }

    bool set_looking(unsigned mine) {
        const std::lock_guard lock(mutex);
        return looking = life == mine;
    }

    void looked() {
        const std::lock_guard lock(mutex);
        looking = false;
        changed.notify_all();
    }
};

bell::bell(work does) : state_(std::make_shared<state>(std::move(does))) {}

bell::~bell() { still(); }

void bell::ring() noexcept {
    guarded(
        "ring", [] { return 0; },
        [&] {
            auto& its = *state_;
            const std::lock_guard lock(its.mutex);
            its.rung = true;
            its.changed.notify_all();
            if (its.has_thread) return 0;
            sigset_t all, before;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
            its.has_thread = guarded(
                "the bell's thread", [] { return false; },
                [&] {
                    std::thread([state = state_, life = its.life] { state->run(life); }).detach();
                    return true;
                });
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
            return 0;
        });
}

void bell::still() noexcept {
    guarded(
        "still", [] { return 0; },
        [&] {
            auto& its = *state_;
            std::unique_lock lock(its.mutex);
            ++its.life;
            its.has_thread = its.rung = false;
            its.changed.notify_all();
            its.changed.wait(lock, [&] { return !its.looking; });
            return 0;
        });
}

}  // namespace banyan::slurm
