// SPDX-License-Identifier: BSD-3-Clause
//
// An older step as the newest one again; what is newer stays, out of the way.
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"

namespace banyan::ckpt {
namespace {

result<void> move_step(int from, int to, std::uint64_t step, const std::string& shown) {
    const auto name = step_name(step);
    struct stat st {};
    // Not every file system can refuse to replace; an empty folder is all that rename(2) would.
    if (::fstatat(to, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
        return fail(errc::conflict, fmt::format("{}/{} is there already", shown, name),
                    fmt::format("remove it, or move it away: banyan-ckpt drop {}/{}", shown, name));
    if (::renameat(from, name.c_str(), to, name.c_str()) == 0) return {};
    return fail_errno(fmt::format("cannot move {} to {}", name, shown), errno);
}

result<unique_fd> aside_of(int top, const std::string& dir) {
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    struct stat st {};
    if (::fstatat(top, set_aside_folder, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        BANYAN_CHECK(create_folder(top, set_aside_folder, modes_in(top), shown));
    return open_folder(top, set_aside_folder, shown);
}

}  // namespace

result<std::vector<std::uint64_t>> set_newer_aside(const storage_user& user, const std::string& dir,
                                                   std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    BANYAN_TRY(const auto there, committed_in(top.get(), dir));
    std::vector<std::uint64_t> moved;
    for (const auto newer : there) {  // the newest first: stopped half-way, the next one is where it begins
        if (newer <= step) break;
        BANYAN_TRY(const auto aside, aside_of(top.get(), dir));
        const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
        BANYAN_CHECK(move_step(top.get(), aside.get(), newer, shown));
        BANYAN_CHECK(sync_folder(aside.get(), shown));
        BANYAN_CHECK(sync_folder(top.get(), dir));
        moved.push_back(newer);
    }
    BANYAN_CHECK(renew_latest(top.get(), dir));
    return moved;
}

result<void> take_back(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    BANYAN_TRY(const auto aside, open_folder(top.get(), set_aside_folder, shown));
    BANYAN_CHECK(open_folder(aside.get(), step_name(step), step_folder(shown, step)));
    BANYAN_CHECK(move_step(aside.get(), top.get(), step, dir));
    BANYAN_CHECK(sync_folder(top.get(), dir));
    return sync_folder(aside.get(), shown);
}

}  // namespace banyan::ckpt
