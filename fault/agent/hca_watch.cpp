// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/hca_watch.hpp"

#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/log.hpp"
#include "common/text.hpp"
#include "common/timer.hpp"

namespace banyan::fault {

using clock = helper::clock;
using std::chrono::milliseconds;

hca_watch::hca_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
                     finding_sink to)
    : io_(io), config_(settings), sink_(std::move(to)), sight_("HCA events", std::move(counters)) {}

void hca_watch::start() {
    if (config_.hca_events) asio::co_spawn(io_, run(), asio::detached);
}

task<void> hca_watch::run() {
    // Soon at first; where there is nothing to hear it is not asked again and again.
    constexpr milliseconds quick(500), slowest(600'000);
    auto pause = quick;
    banyan::timer timer(io_);
    for (;;) {
        const auto begun = clock::now();
        const auto why = co_await listen();
        links_.nobody_listens();
        sight_.after_look({why.text()});
        if (clock::now() - begun > std::chrono::minutes(1)) pause = quick;
        timer.expires_after(pause);
        co_await timer.async_wait(as_result);
        pause = std::min(pause * 2, slowest);
    }
}

task<error> hca_watch::listen() {
    if (running_ && !running_->ended())
        co_return error{errc::unavailable, "the process that listens hangs in the kernel", {}};
    auto started = helper::start(
        io_, {config_.look_program, "look", "hca-events", "--root", config_.root, config_.verbs_library});
    if (!started) co_return started.error();
    running_ = std::move(*started);
    for (;;) {
        // It says that it is there every ten seconds.
        const auto text = co_await running_->line(clock::now() + 3 * config_.look_timeout);
        if (text) {
            after_line(*text);
            continue;
        }
        const bool closed = text.error().code == errc::not_found;
        if (!closed) running_->kill();
        const bool over = co_await running_->ends_by(clock::now() + std::chrono::seconds(1));
        if (!over) running_->kill();
        co_return error{errc::unavailable,
                        closed ? "the process that listens ended" : "the process that listens says nothing",
                        {}};
    }
}

void hca_watch::after_line(const std::string& text) {
    const auto told = nlohmann::json::parse(text, nullptr, false);
    const json_fields in(told);
    if (in.has("news")) {
        const auto event = hardware::hca_event_from(told);
        if (!event) {
            spdlog::error("the process that listens to HCAs: {}", printable(event.error().text()));
            return;
        }
        if (auto fault = links_.after(*event)) tell(std::move(*fault));
        return;
    }
    constexpr std::size_t most_blind = 4096;
    const auto devices = in.number("devices");
    const auto blind = in.texts("blind", most_blind);
    if (!blind) return;
    if (devices && devices_ != *devices) spdlog::info("listens to {} HCAs", *devices);
    devices_ = devices ? std::optional(*devices) : std::nullopt;
    sight_.after_look({blind->begin(), blind->end()});
    for (auto& fault : links_.after_look(blind->empty())) tell(std::move(fault));
}

void hca_watch::expect(const std::string& card, const std::vector<std::string>& ports) {
    if (auto fault = links_.expect(card, ports)) tell(std::move(*fault));
}

void hca_watch::tell(kernel_fault fault) {
    const auto words = printable(fault.message);
    sink_(std::move(fault), words);
}

}  // namespace banyan::fault
