// SPDX-License-Identifier: BSD-3-Clause
#include "common/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "common/utf8.hpp"

namespace banyan {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

result<std::uint64_t> parse_number(std::string_view text, std::uint64_t max) {
    std::uint64_t value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || ec == std::errc::invalid_argument || end != text.data() + text.size())
        return fail(errc::invalid_input, fmt::format("\"{}\" is not a whole number", text));
    if (ec == std::errc::result_out_of_range || value > max)
        return fail(errc::invalid_input, fmt::format("{} is too large (at most {})", text, max));
    return value;
}

result<std::uint64_t> parse_bytes(std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && (is_digit(text[digits]) || text[digits] == '.')) ++digits;
    double value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + digits, value);
    if (digits == 0 || ec != std::errc{} || end != text.data() + digits)
        return fail(errc::invalid_input, fmt::format("\"{}\" is not a size", printable(text)),
                    "write for example 64M or 1.5G");
    const auto unit = text.substr(digits);
    constexpr std::string_view letters = "KMGT";
    int power = 0;
    if (!unit.empty() && unit != "B") {
        const auto at = letters.find(unit[0]);
        const auto rest = unit.substr(1);
        if (at == std::string_view::npos || (!rest.empty() && rest != "B" && rest != "iB"))
            return fail(errc::invalid_input, fmt::format("\"{}\" has an unknown unit \"{}\"", text, unit),
                        "units are K, M, G and T (powers of 1024)");
        power = static_cast<int>(at) + 1;
    }
    value = std::ldexp(value, 10 * power);
    if (value >= 9.2e18) return fail(errc::invalid_input, fmt::format("{} is too large", text));
    return static_cast<std::uint64_t>(value);
}

result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    constexpr std::uint64_t most = 1'000'000'000;
    auto number = parse_number(text.substr(0, digits), most);
    const auto unit = text.substr(digits);
    std::uint64_t factor = 0;
    if (unit == "ms") factor = 1;
    if (unit.empty() || unit == "s") factor = 1000;
    if (unit == "m" || unit == "min") factor = 60'000;
    if (unit == "h") factor = 3'600'000;
    if (!number || factor == 0)
        return fail(errc::invalid_input, fmt::format("\"{}\" is not a duration", text),
                    "write for example 250ms, 10s, 5m or 2h");
    return std::chrono::milliseconds(*number * factor);
}

result<std::vector<std::pair<std::string, std::string>>> parse_key_values(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> out;
    // Each is compared with all before it.
    constexpr std::ptrdiff_t most = 256;
    if (std::count(text.begin(), text.end(), ',') >= most)
        return fail(errc::invalid_input, fmt::format("more than {} pairs of key=value", most));
    for (const auto part : split(text, ',')) {
        const auto at = part.find('=');
        if (at == std::string_view::npos || at == 0)
            return fail(errc::invalid_input, fmt::format("\"{}\" is not key=value", part));
        const auto key = part.substr(0, at);
        for (const auto& [known, value] : out)
            if (known == key) return fail(errc::invalid_input, fmt::format("\"{}\" is given twice", key));
        out.emplace_back(key, part.substr(at + 1));
    }
    return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(word.size() / 2, 1) + 1;
    for (const auto& candidate : known) {
        const auto distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    int unit = 0;
    while (value >= 1024 && unit < 5) {
        value /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string printable(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto c = first_character(text);
        if (c.valid && !commands_a_terminal(c.code)) {
            out += text.substr(0, c.bytes);
        } else if (text[0] == '\n') {
            out += "\\n";
        } else if (text[0] == '\t') {
            out += "\\t";
        } else {
            for (const char each : text.substr(0, c.bytes)) {
                const auto byte = static_cast<unsigned char>(each);
                out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
            }
        }
        text.remove_prefix(c.bytes);
    }
    return out;
}

bool is_printable(std::string_view text) { return printable(text) == text; }

}  // namespace banyan
