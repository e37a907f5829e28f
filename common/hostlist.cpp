// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan {
namespace {

struct numbered_name {
    std::string_view prefix;
    std::string_view digits;
    std::uint64_t number = 0;
};

// "gpu0042" -> {"gpu", "0042", 42}; digits are empty when the name does not end in a number of sensible
// length.
numbered_name split_number(std::string_view name) {
    const std::size_t start = name.find_last_not_of("0123456789") + 1;  // 0 where all are digits
    const auto digits = name.substr(start);
    if (digits.empty() || digits.size() > 18) return {name, {}, 0};
    numbered_name out{name.substr(0, start), digits, 0};
    std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
    return out;
}

/// One part of a host list: a name, or a prefix and the numbers of one range.
struct hostlist_part {
    std::string_view prefix;
    std::uint64_t first = 0, last = 0;
    std::size_t width = 0;  ///< of the numbers, filled with zeros; 0 = no number
};

std::size_t digits_of(std::uint64_t number) {
    std::size_t digits = 1;
    while (number >= 10) {
        number /= 10;
        ++digits;
    }
    return digits;
}

/// Reads a host list without making a name, and keeps the books of what the names would take.
class hostlist_parser {
  public:
    hostlist_parser(std::string_view text, const hostlist_limits& limits) : text_(text), limits_(limits) {}

    result<std::vector<hostlist_part>> parse() {
        std::size_t at = 0;
        while (at < text_.size()) {
            // One item ends at a comma outside brackets.
            const auto stop = std::min(text_.find_first_of(",[", at), text_.size());
            const auto name = text_.substr(at, stop - at);
            BANYAN_CHECK(check_letters(name));
            if (stop == text_.size() || text_[stop] == ',') {
                if (name.empty()) return bad("an empty name");
                BANYAN_CHECK(add({name}));
                at = stop + 1;
                continue;
            }
            const auto close = text_.find(']', stop);
            if (close == std::string_view::npos) return bad("a bracket is not closed");
            BANYAN_CHECK(take_ranges(name, text_.substr(stop + 1, close - stop - 1)));
            at = close + 1;
            if (at < text_.size() && text_[at++] != ',') return bad("text after a bracket");
        }
        return std::move(parts_);
    }

    std::size_t names() const { return names_; }

  private:
    std::unexpected<error> bad(std::string_view why) const {
        std::string shown;
        constexpr std::size_t most = 80;
        for (const char c : text_.substr(0, most)) shown += c < ' ' || c > '~' ? '?' : c;
        return fail(errc::invalid_input, fmt::format("\"{}\" is not a host list: {}", shown, why),
                    "write for example n[01-16],login1");
    }

    result<void> check_letters(std::string_view name) const {
        const bool fine = std::all_of(name.begin(), name.end(), [](char c) {
            return static_cast<unsigned char>(c) > ' ' && c != '\x7f' && c != ']';
        });
        if (!fine) return bad("a name with a bracket, a blank or a control character");
        return {};
    }

    result<void> take_ranges(std::string_view prefix, std::string_view inside) {
        for (;;) {
            const auto comma = inside.find(',');
            const auto range = inside.substr(0, comma);
            const auto dash = range.find('-');
            const auto low = range.substr(0, dash);
            const auto high = dash == std::string_view::npos ? low : range.substr(dash + 1);
            constexpr std::uint64_t largest = 999'999'999'999'999'999;
            const auto first = parse_number(low, largest);
            const auto last = parse_number(high, largest);
            if (!first || !last || *last < *first) return bad("a range is not two rising numbers");
            BANYAN_CHECK(add({prefix, *first, *last, low.size()}));
            if (comma == std::string_view::npos) return {};
            inside.remove_prefix(comma + 1);
        }
    }

    result<void> add(const hostlist_part& part) {
        const auto length =
            part.prefix.size() + (part.width ? std::max(part.width, digits_of(part.last)) : 0);
        if (length > max_host_name) return bad(fmt::format("a name of more than {} bytes", max_host_name));
        if (part.last - part.first >= limits_.names - names_)
            return bad(fmt::format("more than {} names", limits_.names));
        const auto count = static_cast<std::size_t>(part.last - part.first) + 1;
        if (count * length > limits_.bytes - bytes_)
            return bad(fmt::format("names of more than {} bytes together", limits_.bytes));
        names_ += count;
        bytes_ += count * length;
        parts_.push_back(part);
        return {};
    }

    std::string_view text_;
    const hostlist_limits& limits_;
    std::vector<hostlist_part> parts_;
    std::size_t names_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace

std::string compress_hostlist(const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t i = 0; i < names.size();) {
        const auto first = split_number(names[i]);
        if (!out.empty()) out += ',';
        std::string ranges;
        std::size_t j = i;
        while (j < names.size() && !first.digits.empty()) {
            const auto start = split_number(names[j]);
            if (start.prefix != first.prefix || start.digits.size() != first.digits.size()) break;
            std::size_t end = j;
            while (end + 1 < names.size()) {
                const auto next = split_number(names[end + 1]);
                if (next.prefix != first.prefix || next.digits.size() != first.digits.size() ||
                    next.number != start.number + (end + 1 - j))
                    break;
                ++end;
            }
            if (!ranges.empty()) ranges += ',';
            ranges += start.digits;
            if (end > j) ranges += fmt::format("-{}", split_number(names[end]).digits);
            j = end + 1;
        }
        if (j <= i + 1) {
            out += names[i];
            j = i + 1;
        } else {
            out += fmt::format("{}[{}]", first.prefix, ranges);
        }
        i = j;
    }
    return out;
}

result<std::vector<std::string>> expand_hostlist(std::string_view text, const hostlist_limits& limits) {
    hostlist_parser parser(text, limits);
    BANYAN_TRY(const auto parts, parser.parse());
    std::vector<std::string> out;
    out.reserve(parser.names());
    for (const auto& part : parts) {
        if (part.width == 0) out.emplace_back(part.prefix);
        for (auto n = part.first; part.width != 0 && n <= part.last; ++n)
            out.push_back(fmt::format("{}{:0{}}", part.prefix, n, part.width));
    }
    return out;
}

}  // namespace banyan
