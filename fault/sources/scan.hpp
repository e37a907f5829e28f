// SPDX-License-Identifier: BSD-3-Clause
//
// Small steps over a text: each takes something from the front of the view, or leaves it alone.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace banyan::fault::scan {

inline bool drop(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// So many digits, no fewer and no more.
inline bool drop_digits(std::string_view& text, std::size_t least, std::size_t most) {
    const auto n = std::min(text.find_first_not_of("0123456789"), text.size());
    if (n < least || n > most) return false;
    text.remove_prefix(n);
    return true;
}

/// "02:00:01"
inline bool drop_clock(std::string_view& text) {
    return drop_digits(text, 2, 2) && drop(text, ":") && drop_digits(text, 2, 2) && drop(text, ":") &&
           drop_digits(text, 2, 2);
}

/// "2024-06-20 07:46:24[.442]"
inline bool drop_date_and_clock(std::string_view& text) {
    if (!drop_digits(text, 4, 4) || !drop(text, "-") || !drop_digits(text, 2, 2) || !drop(text, "-") ||
        !drop_digits(text, 2, 2) || !drop(text, " ") || !drop_clock(text))
        return false;
    return !drop(text, ".") || drop_digits(text, 1, 6);
}

/// Up to `end`, which is dropped as well, if that is at most `most` bytes away.
inline std::optional<std::string_view> take_until(std::string_view& text, std::string_view end,
                                                  std::size_t most) {
    const auto at = text.substr(0, most + end.size()).find(end);
    if (at == std::string_view::npos || at > most) return {};
    const auto out = text.substr(0, at);
    text.remove_prefix(at + end.size());
    return out;
}

template <class Number>
std::optional<Number> take_any(std::string_view& text, int base) {
    Number value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (ec != std::errc{}) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

inline std::optional<std::uint32_t> take_number(std::string_view& text) {
    return take_any<std::uint32_t>(text, 10);
}
inline std::optional<std::uint32_t> take_hex_number(std::string_view& text) {
    return take_any<std::uint32_t>(text, 16);
}
inline std::optional<std::uint64_t> take_long(std::string_view& text) {
    return take_any<std::uint64_t>(text, 10);
}
inline std::optional<std::uint64_t> take_hex_long(std::string_view& text) {
    return take_any<std::uint64_t>(text, 16);
}

}  // namespace banyan::fault::scan
