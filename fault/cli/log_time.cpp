// SPDX-License-Identifier: BSD-3-Clause
#include "fault/cli/log_time.hpp"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "common/text.hpp"

namespace banyan::fault {
namespace {

constexpr std::string_view digits = "0123456789";

/// ".456789" at the beginning of `rest`, which is taken away.
std::int64_t fraction_ms(std::string_view& rest) {
    if (!rest.starts_with('.') && !rest.starts_with(',')) return 0;
    rest.remove_prefix(1);
    const auto length = std::min(rest.find_first_not_of(digits), rest.size());
    std::string first(rest.substr(0, std::min<std::size_t>(length, 3)));
    first.resize(3, '0');
    rest.remove_prefix(length);
    return static_cast<std::int64_t>(parse_number(first).value_or(0));
}

/// "+01:00", "-0530" or "Z".
std::optional<std::int64_t> zone_ms(std::string_view text) {
    if (text.empty() || text == "Z") return 0;
    const bool west = text.front() == '-';
    if (!west && text.front() != '+') return {};
    const auto hours = parse_number(text.substr(1, 2), 24);
    const auto minutes =
        parse_number(text.substr(std::min(text.size(), text.size() == 6 ? std::size_t{4} : 3)), 59);
    if (!hours || !minutes) return {};
    const auto all = static_cast<std::int64_t>(*hours * 60 + *minutes) * 60'000;
    return west ? -all : all;
}

std::optional<std::int64_t> seconds_or_microseconds(std::string_view text) {
    constexpr std::uint64_t most = 1ull << 53;
    const auto point = text.find('.');
    const auto whole = parse_number(text.substr(0, point), most);
    if (!whole) return {};
    if (point == std::string_view::npos) return static_cast<std::int64_t>(*whole / 1000);
    auto rest = text.substr(point);
    const auto ms = fraction_ms(rest);
    if (!rest.empty() || *whole > most / 1000) return {};
    return static_cast<std::int64_t>(*whole) * 1000 + ms;
}

}  // namespace

std::optional<std::int64_t> log_time_ms(const std::string& text) {
    if (const auto plain = seconds_or_microseconds(text)) return plain;
    std::tm t{};
    for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"}) {
        t = {};
        const char* end = ::strptime(text.c_str(), form, &t);
        if (!end) continue;
        std::string_view rest = end;
        const auto ms = fraction_ms(rest);
        const auto zone = zone_ms(rest);
        if (!zone) return {};
        return static_cast<std::int64_t>(::timegm(&t)) * 1000 + ms - *zone;
    }
    t = {};
    t.tm_year = 72;  // a leap year
    const char* end = ::strptime(text.c_str(), "%b %d %H:%M:%S", &t);
    if (!end) return {};
    std::string_view rest = end;
    const auto ms = fraction_ms(rest);
    return rest.empty() ? std::optional(static_cast<std::int64_t>(::timegm(&t)) * 1000 + ms) : std::nullopt;
}

}  // namespace banyan::fault
