// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/access.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/child.hpp"

namespace banyan::doctor {
namespace {

std::vector<gid_t> groups_of(const passwd& user) {
    int count = 64;
    std::vector<gid_t> out(static_cast<std::size_t>(count));
    while (::getgrouplist(user.pw_name, user.pw_gid, out.data(), &count) < 0)
        out.resize(static_cast<std::size_t>(count));
    out.resize(static_cast<std::size_t>(count));
    return out;
}

bool allows(const struct stat& st, uid_t uid, const std::vector<gid_t>& groups, mode_t bit) {
    if (uid == 0) return true;
    if (st.st_uid == uid) return st.st_mode & (bit << 6);
    if (std::find(groups.begin(), groups.end(), st.st_gid) != groups.end()) return st.st_mode & (bit << 3);
    return st.st_mode & bit;
}

/// What the file system says to him: access lists and servers that know better than mode bits. Nothing where
/// we cannot become him.
std::optional<bool> can_open(const std::filesystem::path& file, const passwd& user) {
    if (::geteuid() != 0) return {};
    const auto groups = groups_of(user);
    const auto answer = run_forked([&] {
        if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(user.pw_gid) != 0 ||
            ::setuid(user.pw_uid) != 0)
            return 2;
        const int fd = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return fd >= 0 ? 0 : errno == EACCES || errno == EPERM ? 1 : 2;
    });
    if (!answer || answer->code > 1) return {};
    return answer->code == 0;
}

}  // namespace

std::string cannot_read(const std::filesystem::path& file, const std::string& user) {
    const auto* entry = ::getpwnam(user.c_str());
    if (!entry) return fmt::format("there is no user {} on this host", user);
    const auto uid = entry->pw_uid;
    const auto groups = groups_of(*entry);
    const auto opened = can_open(file, *entry);
    if (opened && *opened) return {};
    std::filesystem::path at;
    for (const auto& part : std::filesystem::absolute(file)) {
        at /= part;
        struct stat st {};
        if (::stat(at.c_str(), &st) != 0)
            return fmt::format("{}: {}", at.string(), std::generic_category().message(errno));
        const bool folder = S_ISDIR(st.st_mode);
        if (!allows(st, uid, groups, folder ? 1 : 4))
            return fmt::format("{} has mode {:04o}, owner {}", at.string(), st.st_mode & 07777, st.st_uid);
    }
    return opened ? "the file system says so, whatever the modes are" : "";
}

std::optional<obstacle> hidden_from_users(const std::filesystem::path& path) {
    std::error_code ignored;
    const auto named = std::filesystem::absolute(path), real = std::filesystem::canonical(path, ignored);
    // A symbolic link has two ways: to itself, and to the file.
    for (const auto& way : {named, real}) {
        std::filesystem::path at;
        for (const auto& part : way) {
            at /= part;
            struct stat st {};
            if (::stat(at.c_str(), &st) != 0) return {};
            const bool folder = S_ISDIR(st.st_mode);
            const mode_t needed = !folder ? S_IROTH : at == way ? S_IROTH | S_IXOTH : S_IXOTH;
            if ((st.st_mode & needed) == needed) continue;
            return obstacle{fmt::format("{} has mode {:04o}", at.string(), st.st_mode & 07777),
                            fmt::format("chmod {} {}",
                                        !folder     ? "644"
                                        : at == way ? "o+rx"
                                                    : "o+x",
                                        at.string())};
        }
    }
    return {};
}

findings judge_hidden(const std::vector<std::filesystem::path>& paths, const char* why) {
    findings out;
    for (const auto& path : paths) {
        const auto found = hidden_from_users(path);
        // A closed folder is in the way to all that is in it.
        if (!found || std::ranges::find(out, found->fix, &finding::fix) != out.end()) continue;
        out.push_back(
            {verdict::wrong, path.string(), "users cannot read it: " + found->what, why, found->fix});
    }
    return out;
}

}  // namespace banyan::doctor
