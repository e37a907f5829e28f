// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/core.hpp"

#include <exception>
#include <random>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "ckptd/daemon/remember.hpp"

namespace banyan::ckpt {
namespace {

// For users, each with threads of his own: some are stuck in storage while others work.
constexpr std::uint32_t max_user_threads = 256;
constexpr std::uint32_t owner_threads = 4;
constexpr std::size_t max_waiting_storage = 64;
constexpr std::size_t max_waiting_compute = 4096;
constexpr std::chrono::hours remembered_for{24 * 7};
constexpr std::size_t max_given_up = 1000;

}  // namespace

daemon_core::daemon_core(asio::io_context& loop, settings s, std::shared_ptr<keeper::custody> custody)
    : io(loop),
      config(std::move(s)),
      keeper(std::move(custody)),
      budget(std::make_shared<memory_budget>(config.memory_limit, keeper, config.huge_pages == "auto")),
      workers(config.threads),
      munge(1),
      storage("storage", {config.storage_threads, max_user_threads, max_waiting_storage}),
      compute("memory", {config.threads, max_user_threads, max_waiting_compute}),
      owners("a checkpoint directory", {owner_threads, max_user_threads, max_waiting_storage}),
      nonce((static_cast<std::uint64_t>(std::random_device{}()) << 32) | std::random_device{}()) {
    budget->pages.say = [](const std::string& text) { spdlog::info("{}", text); };
}

void daemon_core::spawn(task<void> work) {
    asio::co_spawn(io, std::move(work), [](std::exception_ptr e) {
        try {
            if (e) std::rethrow_exception(e);
        } catch (const std::exception& what) {
            spdlog::error("a task ended with an exception: {}", what.what());
        }
    });
}

session_ptr daemon_core::find_session(std::uint64_t job) const {
    const auto it = sessions.find(job);
    return it == sessions.end() ? nullptr : it->second;
}

std::vector<session_ptr> daemon_core::all_sessions() const {
    std::vector<session_ptr> out;
    for (const auto& [job, s] : sessions)
        for (auto& one : with_states(s)) out.push_back(std::move(one));
    return out;
}

std::uint64_t daemon_core::memory_of_job(const session& s) const {
    const auto job = find_session(s.job());
    if (!job || s.closed) return s.memory_bytes();
    std::uint64_t sum = 0;
    for (const auto& one : with_states(job)) sum += one->memory_bytes();
    return sum;
}

void daemon_core::heard_of(const session& s) const {
    if (const auto job = find_session(s.job())) job->heard = clock::now();
}

void daemon_core::free_session(const session_ptr& s) {
    // The states first: none is ever kept without its job.
    for (const auto& [name, state] : std::exchange(s->states, {})) free_session(state);
    s->closed = true;
    s->remembered.where.reset();
    // The job may have another one by now: whoever frees this one may have waited meanwhile.
    if (s->state.empty() && find_session(s->job()) == s) sessions.erase(s->job());
    s->notify();
}

void daemon_core::end_lease(const session_ptr& s) {
    std::erase_if(given_up, [](const auto& one) { return clock::now() > one.second.at + remembered_for; });
    if (s->committed && s->durable < s->committed && given_up.size() < max_given_up)
        given_up.insert_or_assign(s->job(), given_up_step{s->request.uid, s->committed->step, clock::now()});
    free_session(s);
}

void daemon_core::keep(const session_ptr& s) {
    if (!keeper->is_kept() || s->closed) return;
    auto text = remember(*s);
    if (text == s->remembered.text) return;
    if (!s->remembered.where) s->remembered.where = std::make_unique<keeper::ledger>(keeper);
    const auto written = s->remembered.where->write(std::as_bytes(std::span(text)));
    if (written) {
        s->remembered.text = std::move(text);
        return;
    }
    std::uint64_t held_back = 0;
    if (limiter.pass("keep", clock::now(), held_back))
        spdlog::error("job {}: {}: should this daemon end, it would be lost ({} more since)", s->job(),
                      written.error().text(), held_back);
}

json header_of(const session& s) {
    json out;
    out["job"] = s.job();
    out["generation"] = s.generation;
    if (!s.state.empty()) out["state"] = s.state;
    return out;
}

}  // namespace banyan::ckpt
