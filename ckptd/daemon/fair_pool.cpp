// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/fair_pool.hpp"

#include <system_error>
#include <thread>

#include <fmt/format.h>

namespace banyan::ckpt {

fair_pool::fair_pool(std::string name, limits l)
    : name_(std::move(name)), limits_(l), state_(std::make_shared<state>()) {}

std::size_t fair_pool::load(uid_t uid) const {
    const std::scoped_lock held(state_->lock);
    const auto it = state_->lanes.find(uid);
    return it == state_->lanes.end() ? 0 : it->second.waiting.size() + it->second.running;
}

result<void> fair_pool::submit(uid_t uid, piece work) {
    const std::scoped_lock held(state_->lock);
    auto& mine = state_->lanes[uid];
    const auto refuse = [&](std::string what) {
        if (mine.running == 0) state_->lanes.erase(uid);
        return fail(errc::exhausted, std::move(what));
    };
    if (mine.running < limits_.threads_of_user && state_->threads < limits_.threads) {
        try {
            std::thread(serve, state_, uid, work).detach();
            ++mine.running;
            ++state_->threads;
            return {};
        } catch (const std::system_error& e) {
            if (mine.running == 0) return refuse(fmt::format("{}: no thread: {}", name_, e.what()));
        }
    }
    // Without a thread of his own nobody would ever come to his queue.
    if (mine.running == 0) return refuse(fmt::format("{}: all {} threads are taken", name_, limits_.threads));
    if (mine.waiting.size() >= limits_.waiting_of_user)
        return refuse(
            fmt::format("{}: {} operations of uid {} wait already", name_, mine.waiting.size(), uid));
    mine.waiting.push_back(std::move(work));
    return {};
}

void fair_pool::serve(const std::shared_ptr<state>& s, uid_t uid, piece work) {
    for (;;) {
        work();
        work = nullptr;  // what it holds is let go of before the lock
        const std::scoped_lock held(s->lock);
        auto& mine = s->lanes.at(uid);
        if (!mine.waiting.empty()) {
            work = std::move(mine.waiting.front());
            mine.waiting.pop_front();
            continue;
        }
        --s->threads;
        if (--mine.running == 0) s->lanes.erase(uid);
        return;
    }
}

}  // namespace banyan::ckpt
