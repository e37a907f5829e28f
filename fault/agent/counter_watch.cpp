// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/counter_watch.hpp"

#include <boost/asio/detached.hpp>

#include "common/log.hpp"
#include "common/text.hpp"
#include "common/timer.hpp"

namespace banyan::fault {

namespace {

std::vector<std::string> words_of(const config& c) {
    std::vector<std::string> out{c.look_program, "look", "hcas", "--root", c.root};
    for (const auto& limit : c.counter_limits()) out.push_back(limit.counter);
    return out;
}

}  // namespace

counter_watch::counter_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
                             finding_sink to)
    : io_(io),
      config_(settings),
      sink_(std::move(to)),
      look_(io, words_of(settings), settings.look_timeout),
      rates_(settings.counter_limits()),
      sight_("HCAs", std::move(counters)) {}

void counter_watch::start() {
    if (config_.hca_poll_interval.count() > 0 && !config_.hca_counters.empty())
        asio::co_spawn(io_, run(), asio::detached);
}

task<void> counter_watch::run() {
    banyan::timer timer(io_);
    for (;;) {
        const auto told = co_await look_.ask();
        after_look(told, clock::now());
        timer.expires_after(config_.hca_poll_interval);
        co_await timer.async_wait(as_result);
    }
}

void counter_watch::after_look(const result<nlohmann::json>& told, hca_rates::clock::time_point now) {
    const auto ports = told ? hardware::counters_from(*told) : std::unexpected(told.error());
    if (!ports) {
        sight_.after_look({ports.error().text()});
        return;
    }
    if (ports_ != ports->size()) spdlog::info("reads the error counters of {} HCA ports", ports->size());
    ports_ = ports->size();
    auto found = rates_.after_look(*ports, now);
    sight_.after_look(std::move(found.blind));
    for (const auto& one : found.excess)
        sink_(symptom_at(catalog::symptom::hca_errors, one.bdf, one.device, one.text()),
              printable(one.text()));
}

}  // namespace banyan::fault
