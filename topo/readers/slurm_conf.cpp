// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/slurm_conf.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

/// Parts of a host list at the commas outside brackets.
std::vector<std::string_view> split_items(std::string_view text) {
    std::vector<std::string_view> items;
    std::size_t start = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '[') inside = true;
        if (text[at] == ']') inside = false;
        if (text[at] != ',' || inside) continue;
        items.push_back(text.substr(start, at - start));
        start = at + 1;
    }
    items.push_back(text.substr(start));
    return items;
}

/// The names of both together are within expand_hostlist's limits: bytes and count are known before one is
/// made.
result<void> check_product(const std::vector<std::string>& heads, const std::vector<std::string>& tails) {
    const hostlist_limits limits;
    if (heads.size() * tails.size() > limits.names)
        return fail(errc::invalid_input, fmt::format("a host list of more than {} names", limits.names));
    const auto bytes_of = [](const std::vector<std::string>& names) {
        std::size_t all = 0, longest = 0;
        for (const auto& name : names) {
            all += name.size();
            longest = std::max(longest, name.size());
        }
        return std::pair(all, longest);
    };
    const auto [heads_all, head_longest] = bytes_of(heads);
    const auto [tails_all, tail_longest] = bytes_of(tails);
    if (head_longest + tail_longest > max_host_name)
        return fail(errc::invalid_input, fmt::format("a host name of more than {} bytes", max_host_name));
    if (heads_all * tails.size() + tails_all * heads.size() > limits.bytes)
        return fail(errc::invalid_input,
                    fmt::format("a host list of more than {} bytes of names", limits.bytes));
    return {};
}

/// Appends to each of `heads` each of `tails`.
result<std::vector<std::string>> multiply(const std::vector<std::string>& heads,
                                          const std::vector<std::string>& tails) {
    BANYAN_CHECK(check_product(heads, tails));
    std::vector<std::string> out;
    out.reserve(heads.size() * tails.size());
    for (const auto& head : heads)
        for (const auto& tail : tails) out.push_back(head + tail);
    return out;
}

result<std::vector<std::string>> expand_item(std::string_view item) {
    std::vector<std::string> names{""};
    while (!item.empty()) {
        const auto open = item.find('[');
        const auto literal = item.substr(0, open);
        if (literal.find(']') != std::string_view::npos)
            return fail(errc::invalid_input,
                        fmt::format("\"{}\" closes a bracket that is not open", literal));
        BANYAN_TRY(names, multiply(names, {std::string(literal)}));
        if (open == std::string_view::npos) break;
        const auto close = item.find(']', open);
        if (close == std::string_view::npos)
            return fail(errc::invalid_input,
                        fmt::format("\"{}\" has a bracket that is not closed", item.substr(0, 80)));
        BANYAN_TRY(const auto numbers, expand_hostlist(item.substr(open, close - open + 1)));
        BANYAN_TRY(names, multiply(names, numbers));
        item.remove_prefix(close + 1);
    }
    return names;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<conf_pairs::pair> conf_pairs::next() {
    rest_ = trim(rest_);
    const auto equals = rest_.find('=');
    if (equals == std::string_view::npos) return {};
    const auto key = trim(rest_.substr(0, equals));
    rest_ = trim(rest_.substr(equals + 1));
    const bool quoted = rest_.starts_with('"');
    if (quoted) rest_.remove_prefix(1);
    const auto end = std::min(rest_.find_first_of(quoted ? "\"" : " \t"), rest_.size());
    const auto value = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + (quoted ? 1 : 0), rest_.size()));
    return std::pair(key, value);
}

bool conf_lines::next() {
    whole_.clear();
    while (!rest_.empty()) {
        const auto end = std::min(rest_.find('\n'), rest_.size());
        auto line = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        ++number_;
        if (whole_.empty()) began_ = number_;
        line = trim(line.substr(0, line.find('#')));
        const bool goes_on = line.ends_with('\\');
        if (goes_on) line.remove_suffix(1);
        whole_ += line;
        if (!goes_on || rest_.empty()) return true;
    }
    return false;
}

result<std::vector<std::string>> expand_slurm_hostlist(std::string_view text) {
    const hostlist_limits limits;
    std::vector<std::string> out;
    std::size_t bytes = 0;
    for (const auto item : split_items(text)) {
        if (trim(item).empty())
            return fail(errc::invalid_input,
                        fmt::format("\"{}\" is not a host list: an empty name", text.substr(0, 80)),
                        "write for example n[01-16],login1");
        BANYAN_TRY(auto names, expand_item(trim(item)));
        for (const auto& name : names) bytes += name.size();
        if (out.size() + names.size() > limits.names || bytes > limits.bytes)
            return fail(errc::invalid_input, fmt::format("a host list of more than {} names or {} bytes",
                                                         limits.names, limits.bytes));
        out.insert(out.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
    }
    return out;
}

}  // namespace banyan::topo
