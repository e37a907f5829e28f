// SPDX-License-Identifier: BSD-3-Clause
//
// What cannot be done now: held back by the limits, or slurmctld did not answer. It is asked for again.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include "fault/controller/controller.hpp"

namespace banyan::fault {

namespace {
constexpr std::chrono::milliseconds again(500);
}

void controller::put_off(std::uint64_t number, const std::string& what, std::string why) {
    auto* i = records_.incidents().find(number);
    if (!i) return;
    const auto node = i->object.node;
    i->state = incident_state::held;
    if (i->node_out_ms == 0) limiter_.returned(node);
    const auto text = "held back: " + why;
    const auto said = std::ranges::find(i->actions.rbegin(), i->actions.rend(), what, &action_record::what);
    if (i->held_ms == 0) i->held_ms = wall_ms();
    if (said == i->actions.rend() || said->result != text) records_.record(number, what, node, text, false);
}

task<void> controller::take_up_held() {
    asio::steady_timer timer(io_);
    for (;;) {
        timer.expires_after(again);
        co_await timer.async_wait(as_result);
        if (!limiter_.has_room(wall_ms())) continue;
        for (const auto& [number, i] : records_.incidents().all())
            if (i.state == incident_state::held && i.closed_ms == 0 && !acting_.contains(number))
                asio::co_spawn(io_, act(number), asio::detached);
    }
}

}  // namespace banyan::fault
