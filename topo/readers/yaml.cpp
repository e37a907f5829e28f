// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/yaml.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

struct yaml_line {
    std::uint32_t number = 0;
    std::size_t indent = 0;
    std::string_view text;  ///< without indentation and comment; never empty
};

std::unexpected<error> wrong(std::uint32_t line, std::string_view what) {
    return fail(errc::invalid_input, fmt::format("line {}: {}", line, what),
                "write the file as topology.yaml(5) shows it: one key a line, lists with a dash");
}

/// Without a comment: a sign of that behind a blank, outside of quotes.
std::string_view without_comment(std::string_view text) {
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == '\\' && quote == '"') ++i;
            if (c == quote) quote = 0;
        } else if ((c == '"' || c == '\'') && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '[')) {
            quote = c;
        } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
            return text.substr(0, i);
        }
    }
    return text;
}

bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

/// Where the key ends: at a colon with a blank or nothing behind it.
std::size_t end_of_key(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return i;
    return std::string_view::npos;
}

class yaml_reader {
  public:
    result<yaml_value> read(std::string_view text) {
        BANYAN_CHECK(split(text));
        if (lines_.empty()) return yaml_value{};
        BANYAN_TRY(auto out, value(0));
        if (at_ < lines_.size()) return wrong(lines_[at_].number, "its indentation fits nothing above it");
        return out;
    }

  private:
    static constexpr unsigned deepest = 32;

    result<void> split(std::string_view text) {
        std::optional<error> first;
        bool ended = false;
        for_each_line(text, [&](std::uint32_t number, std::string_view line) {
            const auto indent = std::min(line.find_first_not_of(' '), line.size());
            const auto rest = trim(without_comment(line.substr(indent)));
            if (first || rest.empty() || ended) return;
            if (line[indent] == '\t') first = wrong(number, "a tab in the indentation").error();
            if (indent == 0 && rest == "...") ended = true;
            if (indent == 0 && rest == "---" && !lines_.empty())
                first = wrong(number, "a second document; one is read").error();
            if (!ended && rest != "---") lines_.push_back({number, indent, rest});
        });
        if (first) return std::unexpected(*first);
        return {};
    }

    /// What begins at this line.
    result<yaml_value> value(unsigned depth) {
        if (depth > deepest) return wrong(lines_[at_].number, "nested too deep");
        const auto line = lines_[at_];
        if (is_item(line.text)) return list(line.indent, depth);
        if (line.text.front() != '[' && end_of_key(line.text) != std::string_view::npos)
            return map(line.indent, depth);
        ++at_;
        return scalar(line.text, line.number);
    }

    result<yaml_value> list(std::size_t indent, unsigned depth) {
        yaml_value out;
        out.is = yaml_value::kind::list;
        out.line = lines_[at_].number;
        while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_].text)) {
            auto& line = lines_[at_];
            const auto skip = std::min(line.text.find_first_not_of(' ', 1), line.text.size());
            if (skip == line.text.size()) {
                const auto number = line.number;
                ++at_;
                BANYAN_TRY(auto item, below(indent, number, depth));
                out.items.push_back(std::move(item));
                continue;
            }
            line.indent += skip;
            line.text.remove_prefix(skip);
            BANYAN_TRY(auto item, value(depth + 1));
            out.items.push_back(std::move(item));
        }
        return out;
    }

    result<yaml_value> map(std::size_t indent, unsigned depth) {
        constexpr std::size_t most_keys = 64;
        yaml_value out;
        out.is = yaml_value::kind::map;
        out.line = lines_[at_].number;
        while (at_ < lines_.size() && lines_[at_].indent == indent && !is_item(lines_[at_].text)) {
            const auto line = lines_[at_];
            const auto colon = end_of_key(line.text);
            if (colon == std::string_view::npos) return wrong(line.number, "expected a key and a colon");
            BANYAN_TRY(const auto key, scalar(trim(line.text.substr(0, colon)), line.number));
            if (key.is != yaml_value::kind::text || key.text.empty() || out.find(key.text))
                return wrong(line.number, "a key that is empty, or stands there twice");
            if (out.keys.size() == most_keys) return wrong(line.number, "more keys than any such file has");
            ++at_;
            const auto rest = trim(line.text.substr(colon + 1));
            auto item = rest.empty() ? below(indent, line.number, depth) : scalar(rest, line.number);
            if (!item) return std::unexpected(item.error());
            out.keys.push_back(key.text);
            out.items.push_back(std::move(*item));
        }
        return out;
    }

    /// The value of a key or dash with nothing behind it. A list may stand under its key without being
    /// indented.
    result<yaml_value> below(std::size_t indent, std::uint32_t number, unsigned depth) {
        const bool there =
            at_ < lines_.size() &&
            (lines_[at_].indent > indent || (lines_[at_].indent == indent && is_item(lines_[at_].text) &&
                                             lines_[at_ - 1].text.back() == ':'));
        if (there) return value(depth + 1);
        yaml_value out;
        out.line = number;
        return out;
    }

    static result<yaml_value> scalar(std::string_view text, std::uint32_t number) {
        yaml_value out;
        out.line = number;
        if (text.front() == '[') return flow_list(text, number);
        if (text.front() == '"' || text.front() == '\'') {
            const auto inner = text.substr(1, text.size() - 2);
            if (text.size() < 2 || text.back() != text.front() ||
                inner.find_first_of("\"'\\") != std::string_view::npos)
                return wrong(number, "a quoted text that does not end, or with signs that need an escape");
            out.text = inner;
            return out;
        }
        if (std::string_view("{&*!|>%@`?,]}").find(text.front()) != std::string_view::npos)
            return wrong(number, fmt::format("a value that begins with '{}' is not read", text.front()));
        if (text != "~" && text != "null") out.text = text;
        return out;
    }

    static result<yaml_value> flow_list(std::string_view text, std::uint32_t number) {
        yaml_value out;
        out.is = yaml_value::kind::list;
        out.line = number;
        if (text.back() != ']') return wrong(number, "a list that does not end in its line");
        for (auto rest = trim(text.substr(1, text.size() - 2)); !rest.empty();) {
            const auto comma = std::min(rest.find(','), rest.size());
            const auto one = trim(rest.substr(0, comma));
            if (one.empty() || one.front() == '[')
                return wrong(number, "a list within a list, or an empty item");
            BANYAN_TRY(auto item, scalar(one, number));
            out.items.push_back(std::move(item));
            rest = trim(rest.substr(std::min(comma + 1, rest.size())));
        }
        return out;
    }

    std::vector<yaml_line> lines_;
    std::size_t at_ = 0;
};

}  // namespace

const yaml_value* yaml_value::find(std::string_view key) const {
    const auto at = std::find(keys.begin(), keys.end(), key);
    return at == keys.end() ? nullptr : &items[static_cast<std::size_t>(at - keys.begin())];
}

result<yaml_value> read_yaml(std::string_view text) {
    if (text.size() > max_yaml_bytes)
        return fail(errc::invalid_input, fmt::format("the file is larger than {} bytes", max_yaml_bytes));
    return yaml_reader().read(text);
}

}  // namespace banyan::topo
