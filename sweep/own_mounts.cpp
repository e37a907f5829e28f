// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/own_mounts.hpp"

#include <algorithm>

#include "common/text.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t most_mountinfo = 64u << 20;
/// What systemd mounts over what a service is not to see (ProtectHome=, InaccessiblePaths=).
constexpr std::string_view hidden_by_systemd = "/systemd/inaccessible/";

/// "\040" stands for a blank: blanks, tabs, line ends and backslashes are written so.
std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t at) { return text[i + at] >= '0' && text[i + at] <= '7'; };
        if (text[i] == '\\' && i + 3 < text.size() && digit(1) && digit(2) && digit(3)) {
            out +=
                static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

bool has_ro(std::string_view options) {
    const auto words = split(options, ',');
    return std::ranges::find(words, "ro") != words.end();
}

bool lies_in(const std::string& path, const std::string& folder) {
    if (!path.starts_with(folder)) return false;
    return folder == "/" || path.size() == folder.size() || path[folder.size()] == '/';
}

}  // namespace

std::vector<mount_line> parse_mountinfo(std::string_view text) {
    constexpr std::size_t root = 3, point = 4, options = 5, first_optional = 6, of_system = 3;
    std::vector<mount_line> out;
    for (const auto line : split(text, '\n')) {
        const auto words = split(line, ' ');
        if (words.size() < first_optional) continue;
        const auto dash = std::find(words.begin() + first_optional, words.end(), "-");
        if (dash == words.end() || dash + 1 == words.end()) continue;
        const bool has_more = words.end() - dash > static_cast<std::ptrdiff_t>(of_system);
        out.push_back({unescaped(words[point]), unescaped(dash[1]), unescaped(words[root]),
                       has_ro(words[options]), has_more && has_ro(dash[of_system])});
    }
    return out;
}

std::string without_end_slash(const std::string& path) {
    auto out = std::filesystem::path(path).lexically_normal().string();
    while (out.size() > 1 && out.ends_with('/')) out.pop_back();
    return out;
}

const mount_line* mounted_at(const std::vector<mount_line>& mounts, const std::string& path) {
    const auto top =
        std::find_if(mounts.rbegin(), mounts.rend(), [&](const auto& m) { return m.point == path; });
    return top == mounts.rend() ? nullptr : &*top;
}

const mount_line* mount_of(const std::vector<mount_line>& mounts, const std::string& path) {
    const mount_line* out = nullptr;
    for (const auto& m : mounts)
        if (lies_in(path, m.point) && (!out || m.point.size() >= out->point.size())) out = &m;
    return out;
}

result<mounts_seen> look_at_mounts(const std::filesystem::path& root) {
    mounts_seen out;
    BANYAN_TRY(const auto own, hardware::read_small(root / "proc/self/mountinfo", most_mountinfo));
    out.own = parse_mountinfo(own);
    // Who may not see process 1's has less than it, as in a sandbox: the two may differ.
    std::error_code not_own, not_of_1;
    const auto whose = std::filesystem::read_symlink(root / "proc/self/ns/mnt", not_own),
               of_1 = std::filesystem::read_symlink(root / "proc/1/ns/mnt", not_of_1);
    out.nodes = !not_own && !not_of_1 && whose == of_1;
    if (out.nodes) return out;
    if (const auto text = hardware::read_small(root / "proc/1/mountinfo", most_mountinfo))
        out.of_1 = parse_mountinfo(*text);
    return out;
}

bool is_read_only_here_alone(const mounts_seen& seen, const std::string& folder) {
    const auto* own = mount_of(seen.own, folder);
    // A file system that went read-only, as upon errors, is so wherever it is mounted.
    if (seen.nodes || !own || own->system_read_only) return false;
    if (!seen.of_1) return true;
    const auto* nodes = mount_of(*seen.of_1, folder);
    return !nodes || (!nodes->read_only && !nodes->system_read_only);
}

bool is_hidden_here(const mounts_seen& seen, const std::string& path) {
    const auto* own = mounted_at(seen.own, path);
    if (own) return own->of.find(hidden_by_systemd) != std::string::npos;
    return seen.of_1 && mounted_at(*seen.of_1, path);
}

}  // namespace banyan::sweep
