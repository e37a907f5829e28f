// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/row_names.hpp"

#include <algorithm>
#include <charconv>

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
bool in_step(const std::vector<long>& places, const std::vector<long>& values) {
    const auto dp = places[1] - places[0], dv = values[1] - values[0];
    // Of two names each step fits: only the plainest is believed.
    if (dv == 0 || dv % dp != 0 || (values.size() == 2 && dv != dp)) return false;
    for (std::size_t i = 2; i < values.size(); ++i)
        if (values[i] - values[0] != dv / dp * (places[i] - places[0])) return false;
    return true;
}

}  // namespace

row_name name_in_row(const std::vector<std::pair<long, std::string>>& row, long at) {
    row_name out;
    if (row.size() < 2) return out;
    std::vector<parts> all;
    for (const auto& [place, name] : row) all.push_back(split(name));
    auto told = all.front();
    std::size_t column = told.numbers.size();
    for (const auto& p : all) {
        if (p.words != told.words) return out;
        for (std::size_t c = 0; c < p.numbers.size(); ++c) {
            if (p.numbers[c] == told.numbers[c]) continue;
            if (column < told.numbers.size() && column != c) return out;
            column = c;
        }
    }
    if (column == told.numbers.size()) return out;
    std::vector<long> places, ranks, values;
    for (std::size_t i = 0; i < row.size(); ++i) {
        places.push_back(row[i].first);
        ranks.push_back(static_cast<long>(i));
        values.push_back(all[i].numbers[column]);
    }
    const bool without = in_step(ranks, values);
    if (!in_step(places, values)) {
        out.shows = without ? -1 : 0;
        return out;
    }
    const auto step = (values[1] - values[0]) / (places[1] - places[0]);
    const auto number = values[0] + step * (at - places[0]);
    if (number < 0) return out;
    // Of a row that begins with 2, or ends, the numbers show what is before; not what may come after.
    out.shows = !without || (at < places.front() && step == 1 && number == 1) ? 1 : 0;
    for (std::size_t c = 0; c < told.numbers.size(); ++c)
        out.name +=
            fmt::format("{}{:0{}}", told.words[c], c == column ? number : told.numbers[c], told.digits[c]);
    out.name += told.words.back();
    return out;
}

}  // namespace banyan::topo::build
