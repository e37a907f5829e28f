// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/hearing.hpp"

#include <algorithm>

#include "common/log.hpp"

namespace banyan::fault {

heard hearing::hear(incident& i, change what) {
    const auto& all = records_.incidents().all();
    const bool was_ignored = is_ignored(i);
    const bool unheard = was_ignored || what == change::first || what == change::echo;
    const bool act =
        was_ignored || what == change::first || what == change::worse || rules_.asks_for_more(i, all);
    if (unheard) {
        auto asked = rules_.decide(i, all);
        // Whoever acts on it decides anew. Until then it must not look as if it were ignored still.
        i.decided = static_cast<std::uint8_t>(asked.step);
        i.rule = std::move(asked.rule);
        i.advice = std::move(asked.why);
        records_.incidents().touch();
        if (is_ignored(i)) {
            i.state = incident_state::done;
            return heard::ignored;
        }
        announce(i);
    }
    return act ? heard::act : heard::noted;
}

void hearing::announce(const incident& i) {
    metrics_->count_incident(
        i.reason, static_cast<double>(std::max<std::int64_t>(0, i.incident_ms - i.line_ms)) / 1000.0);
    spdlog::warn("incident {} {}: {} ({})", i.id(), name_of(i.severity), i.cause, i.object.text());
}

}  // namespace banyan::fault
