// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/mounts.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "common/text.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t most_mountinfo = 64u << 20;

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

}  // namespace

std::vector<mount_line> parse_mountinfo(std::string_view text) {
    constexpr std::size_t point = 4, first_optional = 6;
    std::vector<mount_line> out;
    for (const auto line : split(text, '\n')) {
        const auto words = split(line, ' ');
        if (words.size() < first_optional) continue;
        const auto dash = std::find(words.begin() + first_optional, words.end(), "-");
        if (dash == words.end() || dash + 1 == words.end()) continue;
        out.push_back({unescaped(words[point]), unescaped(dash[1])});
    }
    return out;
}

std::string without_end_slash(const std::string& path) {
    auto out = std::filesystem::path(path).lexically_normal().string();
    while (out.size() > 1 && out.ends_with('/')) out.pop_back();
    return out;
}

finding judge_mount(const std::string& point, const std::vector<mount_line>& mounted, int answer) {
    const auto path = without_end_slash(point);
    // What was mounted last is on top of the others.
    const auto on_top =
        std::find_if(mounted.rbegin(), mounted.rend(), [&](const auto& m) { return m.point == path; });
    const auto why = std::generic_category().message(answer);
    if (answer == EACCES || answer == EPERM)
        return unknown({errc::denied, fmt::format("{}: {}", point, why), "run it as root"});
    if (on_top == mounted.rend()) return unfit(point + " is not mounted");
    if (answer != 0) return unfit(fmt::format("{} is mounted ({}), and says: {}", point, on_top->type, why));
    if (on_top->type == "autofs")
        return unfit(point + " is not mounted: the automounter waits there, and has mounted nothing");
    return fit(fmt::format("{} is mounted ({})", point, on_top->type));
}

finding check_mount(const std::filesystem::path& root, const std::string& point) {
    struct statvfs st {};
    const int answer = ::statvfs(point.c_str(), &st) == 0 ? 0 : errno;  // has the automounter mount it, too
    const auto text = hardware::read_small(root / "proc/self/mountinfo", most_mountinfo);
    if (!text) return unknown(text.error());
    return judge_mount(point, parse_mountinfo(*text), answer);
}

}  // namespace banyan::sweep
