// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/sight.hpp"

#include <algorithm>
#include <cctype>

#include "common/log.hpp"
#include "common/text.hpp"

namespace banyan::fault {

sight::sight(std::string of, std::shared_ptr<metrics> counters)
    : of_(std::move(of)), label_(of_), metrics_(std::move(counters)) {
    std::ranges::transform(label_, label_.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}

void sight::after_look(std::set<std::string> blind) {
    std::size_t told = 0, over = 0;
    for (const auto& what : blind)
        if (!blind_.contains(what) && ++told <= most_told)
            spdlog::warn("cannot look at {}: {}", of_, printable(what));
    if (told > most_told) spdlog::warn("cannot look at {}: and {} more", of_, told - most_told);
    for (const auto& what : blind_)
        if (!blind.contains(what) && ++over <= most_told)
            spdlog::info("{}: this is over: {}", of_, printable(what));
    if (over > most_told) spdlog::info("{}: and {} more are over", of_, over - most_told);
    blind_ = std::move(blind);
    metrics_->set_blind(label_, blind_.size());
}

}  // namespace banyan::fault
