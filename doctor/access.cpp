// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/access.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

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

}  // namespace

std::string cannot_read(const std::filesystem::path& file, const std::string& user) {
    const auto* entry = ::getpwnam(user.c_str());
    if (!entry) return fmt::format("there is no user {} on this host", user);
    const auto uid = entry->pw_uid;
    const auto groups = groups_of(*entry);
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
    return {};
}

}  // namespace banyan::doctor
