// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/as_user.hpp"

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace banyan::ckpt {
namespace {

int set_thread_groups(const std::vector<gid_t>& groups) {
    return static_cast<int>(::syscall(SYS_setgroups, groups.size(), groups.data()));
}

using capability_sets = std::array<__user_cap_data_struct, 2>;

bool read_capabilities(capability_sets& sets) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capget, &head, sets.data()) == 0;
}

// Of this thread alone. What is permitted stays, so that the way back is open.
bool set_effective(const std::array<std::uint32_t, 2>& effective) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    capability_sets sets{};
    if (!read_capabilities(sets)) return false;
    for (std::size_t i = 0; i < sets.size(); ++i) sets[i].effective = effective[i];
    return ::syscall(SYS_capset, &head, sets.data()) == 0;
}

}  // namespace

storage_user myself() {
    storage_user out{::geteuid(), ::getegid(), {}};
    const int count = ::getgroups(0, nullptr);
    out.groups.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count > 0 && ::getgroups(count, out.groups.data()) < 0) out.groups.clear();
    return out;
}

storage_user find_user(uid_t uid, gid_t gid) {
    storage_user out{uid, gid, {gid}};
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> buffer(16 * 1024);
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return out;
    int count = 256;
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    if (::getgrouplist(found->pw_name, gid, groups.data(), &count) < 0) {
        groups.resize(static_cast<std::size_t>(count));
        if (::getgrouplist(found->pw_name, gid, groups.data(), &count) < 0) return out;
    }
    groups.resize(static_cast<std::size_t>(count));
    out.groups = std::move(groups);
    return out;
}

result<as_user> as_user::take(const storage_user& user) {
    as_user out;
    // A container's root may be nobody else: in a namespace of his own the kernel gives him no groups.
    if (::geteuid() != 0 || user == myself()) return out;
    const int count = ::getgroups(0, nullptr);
    out.before_.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
    if (count > 0 && ::getgroups(count, out.before_.data()) < 0)
        return fail_errno("cannot read our groups", errno);
    capability_sets sets{};
    if (!read_capabilities(sets)) return fail_errno("cannot read our capabilities", errno);
    for (std::size_t i = 0; i < sets.size(); ++i) out.effective_[i] = sets[i].effective;
    if (set_thread_groups(user.groups) != 0) return fail_errno("cannot take the user's groups", errno);
    out.active_ = true;
    ::setfsgid(user.gid);
    ::setfsuid(user.uid);
    // Neither call reports failure; asking with an impossible id tells what is in force.
    if (::setfsuid(static_cast<uid_t>(-1)) != static_cast<int>(user.uid) ||
        ::setfsgid(static_cast<gid_t>(-1)) != static_cast<int>(user.gid))
        return fail(errc::denied, fmt::format("cannot act as uid {}", user.uid));
    // A job of root keeps what root has; nobody else's does.
    if (user.uid != 0 && !set_effective({})) return fail_errno("cannot lay down our capabilities", errno);
    return out;
}

as_user::~as_user() {
    if (!active_) return;
    const bool able = set_effective(effective_);
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    // A worker that stayed half a user would write the next job's files: better no daemon than that.
    if (!able || set_thread_groups(before_) != 0 ||
        ::setfsuid(static_cast<uid_t>(-1)) != static_cast<int>(::geteuid()))
        std::abort();
}

}  // namespace banyan::ckpt
