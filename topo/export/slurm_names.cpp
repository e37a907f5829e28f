// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/slurm_names.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

constexpr std::size_t longest = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_plain(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
}

std::tuple<std::string_view, std::size_t, std::string_view> sort_key(std::string_view name) {
    std::size_t start = name.size();
    while (start > 0 && is_digit(name[start - 1])) --start;
    return {name.substr(0, start), name.size() - start, name.substr(start)};
}

}  // namespace

bool is_slurm_name(std::string_view name) {
    return !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), is_plain);
}

std::string slurm_namer::operator()(std::string_view wanted) {
    std::string name(wanted.substr(0, longest - 8));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !is_plain(c); }, '-');
    if (name.empty()) name = "group";
    auto unique = name;
    for (unsigned n = 2; !taken_.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    return unique;
}

std::string comment_text(std::string_view text) {
    std::string out(text);
    std::replace_if(
        out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f || c == '\\'; }, '?');
    return out;
}

bool by_number(const std::string& a, const std::string& b) { return sort_key(a) < sort_key(b); }

std::string sorted_hostlist(std::vector<std::string> names) {
    std::sort(names.begin(), names.end(), by_number);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return compress_hostlist(names);
}

}  // namespace banyan::topo
