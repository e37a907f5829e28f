// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/gpu_watch.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>

#include "common/log.hpp"
#include "common/text.hpp"

namespace banyan::fault {

using clock = helper::clock;

namespace {

// However many lines a storm has: so long between two looks, at least.
constexpr std::chrono::seconds look_soon(5);

}  // namespace

gpu_watch::gpu_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
                     finding_sink to)
    : io_(io),
      config_(settings),
      sink_(std::move(to)),
      look_(io, {settings.look_program, "look", "gpus", "--root", settings.root}, settings.look_timeout),
      sight_("GPUs", std::move(counters)),
      timer_(io) {}

void gpu_watch::start() {
    if (config_.gpu_poll_interval.count() > 0) asio::co_spawn(io_, run(), asio::detached);
}

void gpu_watch::hurry() {
    const auto at = looked_ + look_soon;
    if (at < timer_.expiry()) timer_.expires_at(at);
}

task<void> gpu_watch::run() {
    for (;;) {
        const auto told = co_await look_.ask();
        const bool again = after_look(told);
        looked_ = clock::now();
        timer_.expires_at(looked_ + (again ? std::min<clock::duration>(look_soon, config_.gpu_poll_interval)
                                           : clock::duration(config_.gpu_poll_interval)));
        // Whoever hurries sets another time.
        while (clock::now() < timer_.expiry()) co_await timer_.async_wait(as_result);
    }
}

bool gpu_watch::after_look(const result<nlohmann::json>& told) {
    const auto all = told ? hardware::gpu_answers_from(*told) : std::unexpected(told.error());
    if (!all) {
        sight_.after_look({all.error().text()});
        return false;
    }
    if (gpus_ != all->size()) spdlog::info("looks at {} GPUs by NVIDIA's library", all->size());
    gpus_ = all->size();
    after_domains(*all);
    auto found = facts_.after_look(*all);
    sight_.after_look(std::move(found.blind));
    for (const auto& what : found.standing) spdlog::info("was so when it was first looked at: {}", what);
    for (auto& fault : found.faults) {
        const auto words = printable(fault.message);
        sink_(std::move(fault), words);
    }
    return found.again_soon;
}

// A card that does not tell, as one that is lost or not registered yet, changes nothing of what is known.
void gpu_watch::after_domains(const hardware::gpu_answers& gpus) {
    std::optional<std::string> said;
    for (const auto& gpu : gpus) {
        if (!gpu || !gpu->nvlink_domain) continue;
        const bool differs = said && *said != *gpu->nvlink_domain;
        said = differs ? std::string() : *gpu->nvlink_domain;
        if (differs) break;
    }
    if (!said || said == domain_) return;
    if (!said->empty())
        spdlog::info("the node's GPUs are in NVLink domain {}", *said);
    else if (domain_)
        spdlog::info("the node's GPUs are in no NVLink domain any more, or in different ones");
    domain_ = std::move(said);
}

}  // namespace banyan::fault
