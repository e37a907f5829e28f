// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/row_names.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace banyan::topo::build {
namespace {

/// "spine-r2-03" is the words "spine-r", "-", "" around the numbers 2 and 03.
struct parts {
    std::vector<std::string> words;
    std::vector<long> numbers;
    std::vector<std::size_t> digits;
};

parts split(const std::string& name) {
    constexpr std::size_t most_digits = 9;
    parts out;
    out.words.emplace_back();
    for (std::size_t i = 0; i < name.size();) {
        const auto end = std::min(name.find_first_not_of("0123456789", i), name.size());
        if (end == i || end - i > most_digits) {
            out.words.back() += name[i++];
            continue;
        }
        long number = 0;
        std::from_chars(name.data() + i, name.data() + end, number);
        out.numbers.push_back(number);
        out.digits.push_back(end - i);
        out.words.emplace_back();
        i = end;
    }
    return out;
}

/// Whether values[i] = values[0] + step * (places[i] - places[0]) for one step that is not 0.
bool steps_evenly(const std::vector<long>& places, const std::vector<long>& values) {
    const auto dp = places[1] - places[0], dv = values[1] - values[0];
    // Of two names each step fits: only the plainest is believed.
    if (dv == 0 || dv % dp != 0 || (values.size() == 2 && dv != dp)) return false;
    for (std::size_t i = 2; i < values.size(); ++i)
        if (values[i] - values[0] != dv / dp * (places[i] - places[0])) return false;
    return true;
}

/// A name's number in its row: that of the one column in which the names differ, or of two, as "S03/U2" is
/// the card's number and the ASIC's on it.
struct numbering {
    std::size_t high = 0, low = 0;  ///< columns; the same where there is one
    long base = 1, least = 0;       ///< of the lower: how many numbers it has, and its first

    long of(const parts& p) const {
        return high == low ? p.numbers[high] : p.numbers[high] * base + p.numbers[low] - least;
    }
    /// Of two columns neither has more numbers than are seen: where it ends cannot be known.
    bool may_be(const std::vector<parts>& all, long number) const {
        if (high == low) return true;
        const auto [first, last] =
            std::ranges::minmax(all, {}, [&](const auto& p) { return p.numbers[high]; });
        return number / base >= first.numbers[high] && number / base <= last.numbers[high];
    }
    std::string name(parts p, long number) const {
        p.numbers[high] = number / base;
        if (high != low) p.numbers[low] = number % base + least;
        std::string out;
        for (std::size_t c = 0; c < p.numbers.size(); ++c)
            out += fmt::format("{}{:0{}}", p.words[c], p.numbers[c], p.digits[c]);
        return out + p.words.back();
    }
};

std::optional<numbering> numbering_of(const std::vector<parts>& all) {
    const auto& first = all.front();
    std::vector<std::size_t> differ;
    for (std::size_t c = 0; c < first.numbers.size(); ++c)
        if (std::ranges::any_of(all, [&](const auto& p) { return p.numbers[c] != first.numbers[c]; }))
            differ.push_back(c);
    if (differ.empty() || differ.size() > 2) return {};
    numbering out{differ.front(), differ.back(), 1, 0};
    if (differ.size() == 1) return out;
    const auto [least, most] =
        std::ranges::minmax(all, {}, [&](const auto& p) { return p.numbers[out.low]; });
    out.least = least.numbers[out.low];
    out.base = most.numbers[out.low] - out.least + 1;
    return out;
}

/// From all of these names together, of which so many columns may differ.
row_name told_by(std::span<const std::pair<long, std::string>> row, long at, std::size_t most_columns) {
    row_name out;
    std::vector<parts> all;
    for (const auto& [place, name] : row) all.push_back(split(name));
    if (std::ranges::any_of(all, [&](const auto& p) { return p.words != all.front().words; })) return out;
    const auto numbers = numbering_of(all);
    if (!numbers || (most_columns == 1 && numbers->high != numbers->low)) return out;
    std::vector<long> places, ranks, values;
    for (std::size_t i = 0; i < row.size(); ++i) {
        places.push_back(row[i].first);
        ranks.push_back(static_cast<long>(i));
        values.push_back(numbers->of(all[i]));
    }
    const bool without = steps_evenly(ranks, values);
    if (!steps_evenly(places, values)) {
        out.shows = without ? -1 : 0;
        return out;
    }
    const auto step = (values[1] - values[0]) / (places[1] - places[0]);
    const auto number = values[0] + step * (at - places[0]);
    if (number < 0 || !numbers->may_be(all, number)) return out;
    // A row that begins with 2 shows that there was a first; none shows that there was one more at its end.
    const bool second = at < places.front() && step == 1 && number == 1 && numbers->high == numbers->low;
    out.shows = !without || second ? 1 : 0;
    out.name = numbers->name(all.front(), number);
    return out;
}

}  // namespace

row_name name_in_row(const std::vector<std::pair<long, std::string>>& row, long at) {
    if (row.size() < 2) return {};
    auto out = told_by(row, at, 2);
    if (!out.name.empty() || out.shows != 0) return out;
    // The row may be of several stretches that are each numbered anew: then those around it tell.
    const auto next =
        std::ranges::lower_bound(row, at, {}, &std::pair<long, std::string>::first) - row.begin();
    for (auto first = std::max(next - 2, std::ptrdiff_t{0}); first < next && first + 3 <= std::ssize(row);
         ++first) {
        if (first + 3 <= next) continue;
        out = told_by(std::span(row).subspan(static_cast<std::size_t>(first), 3), at, 1);
        if (out.shows != 0) return out;
    }
    return {};
}

}  // namespace banyan::topo::build
