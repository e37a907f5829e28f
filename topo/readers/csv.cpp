// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

/// Of a row; the tools' widest tables have some two hundred. What stands behind them is not looked at.
constexpr std::size_t most_fields = 4096;

template <class Number, class... Form>
std::optional<Number> whole(std::string_view text, Form... form) {
    Number value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, form...);
    if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void erase_all(std::string& text, std::string_view part) {
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at))
        text.erase(at, part.size());
}

}  // namespace

void split_row(std::string_view line, char separator, std::vector<std::string_view>& out) {
    out.clear();
    bool may_close = true;  // no quote that a text before did not end at ends a later one
    while (out.size() < most_fields) {
        while (!line.empty() && (line[0] == ' ' || line[0] == '\t')) line.remove_prefix(1);
        std::size_t end = std::string_view::npos;
        if (may_close && line.starts_with('"')) {
            may_close = false;
            for (auto quote = line.find('"', 1); quote != std::string_view::npos;
                 quote = line.find('"', quote + 1)) {
                const auto after = line.find_first_not_of(" \t", quote + 1);
                if (after != std::string_view::npos && line[after] != separator) continue;
                out.push_back(line.substr(1, quote - 1));
                may_close = true;
                if (after == std::string_view::npos) return;
                end = after;
                break;
            }
        }
        if (end == std::string_view::npos) {
            end = line.find(separator);
            out.push_back(trim(line.substr(0, end)));
            if (end == std::string_view::npos) return;
        }
        line.remove_prefix(end + 1);
    }
}

std::string plain_name(std::string_view column) {
    std::string out;
    for (const char c : column.substr(0, 128)) {
        if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '#') out += c;
    }
    erase_all(out, "counter");
    for (const std::string_view end : {"extended", "ext"})
        if (out.ends_with(end)) out.resize(out.size() - end.size());
    return out;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
    text = trim(text);
    return text.starts_with("0x") ? hex_number(text) : whole<std::uint64_t>(text);
}

std::optional<std::uint64_t> hex_number(std::string_view text) {
    text = trim(text);
    if (text.starts_with("0x")) text.remove_prefix(2);
    return whole<std::uint64_t>(text, 16);
}

std::optional<double> real_number(std::string_view text) {
    const auto out = whole<double>(trim(text));
    return out && std::isfinite(*out) && *out >= 0 ? out : std::nullopt;
}

void table::head(std::string_view line, char separator) {
    separator_ = separator;
    split_row(line, separator, fields_);
    names_.clear();
    for (const auto f : fields_) names_.push_back(plain_name(f));
    fields_.clear();
}

std::size_t table::column(std::initializer_list<std::string_view> names) const {
    for (const auto wanted : names) {
        const auto at = std::find(names_.begin(), names_.end(), wanted);
        if (at != names_.end()) return static_cast<std::size_t>(at - names_.begin());
    }
    return none;
}

bool table::row(std::string_view line) {
    split_row(line, separator_, fields_);
    if (fields_.size() <= names_.size()) return fields_.size() == names_.size();
    const auto more = fields_.begin() + static_cast<std::ptrdiff_t>(names_.size());
    if (std::all_of(more, fields_.end(), [](auto f) { return f.empty(); })) return true;
    return line.starts_with('"') && split_from_the_end(line);
}

bool table::split_from_the_end(std::string_view line) {
    fields_.resize(names_.size());
    for (auto i = fields_.size(); i-- > 1;) {
        const auto at = line.rfind(separator_);
        if (at == std::string_view::npos) return false;
        fields_[i] = trim(line.substr(at + 1));
        line = line.substr(0, at);
    }
    line = trim(line);
    if (line.size() < 2 || line.back() != '"') return false;
    fields_[0] = line.substr(1, line.size() - 2);
    return true;
}

}  // namespace banyan::topo
