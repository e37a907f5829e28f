// SPDX-License-Identifier: BSD-3-Clause
//
// An older step as the newest one again; what is newer stays, out of the way.
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"

namespace banyan::ckpt {
namespace {

bool is_there(int folder, const std::string& name) {
    struct stat st {};
    return ::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

result<void> is_free(int folder, const std::string& name, const std::string& shown) {
    if (!is_there(folder, name)) return {};
    return fail(errc::conflict, fmt::format("{}/{} is there already", shown, name),
                "nothing is replaced: move one of the two elsewhere first");
}

result<void> move_name(int from, int to, const std::string& name, const std::string& shown) {
    BANYAN_CHECK(is_free(to, name, shown));
    if (::renameat(from, name.c_str(), to, name.c_str()) == 0) return {};
    return fail_errno(fmt::format("cannot move {} to {}", name, shown), errno);
}

result<unique_fd> aside_of(int top, const std::string& dir) {
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    if (!is_there(top, set_aside_folder)) {
        BANYAN_CHECK(create_folder(top, set_aside_folder, modes_in(top), shown));
        // Before anything is in it: what is moved into a folder that a crash takes away is lost.
        BANYAN_CHECK(sync_folder(top, dir));
    }
    return open_folder(top, set_aside_folder, shown);
}

/// A step may have two names: one that another of its number was about to replace.
std::vector<std::string> names_of(int top, std::uint64_t step) {
    std::vector<std::string> out;
    for (const auto& name : {step_name(step), replaced_name(step)})
        if (is_there(top, name)) out.push_back(name);
    return out;
}

/// All that is newer, the newest first: stopped half-way, the next one is where a job begins.
result<void> move_newer(int top, const std::string& dir, std::uint64_t step,
                        std::vector<std::uint64_t>& moved) {
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    for (;;) {  // a list has an end, a directory may have more
        BANYAN_TRY(auto newer, committed_in(top, dir));
        std::erase_if(newer, [&](auto other) { return other <= step; });
        if (newer.empty()) return {};
        BANYAN_TRY(const auto aside, aside_of(top, dir));
        for (const auto other : newer)
            for (const auto& name : names_of(top, other)) BANYAN_CHECK(is_free(aside.get(), name, shown));
        for (const auto other : newer) {
            for (const auto& name : names_of(top, other))
                BANYAN_CHECK(move_name(top, aside.get(), name, shown));
            moved.push_back(other);
        }
        BANYAN_CHECK(sync_folder(aside.get(), shown));
        BANYAN_CHECK(sync_folder(top, dir));
    }
}

}  // namespace

result<std::vector<std::uint64_t>> set_newer_aside(const storage_user& user, const std::string& dir,
                                                   std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    std::vector<std::uint64_t> moved;
    const auto done = move_newer(top.get(), dir, step, moved);
    const auto named = renew_latest(top.get(), dir);
    if (done && named) return moved;
    auto why = done ? named.error() : done.error();
    if (!moved.empty())
        why.hint +=
            fmt::format("{}set aside before that: {}", why.hint.empty() ? "" : "; ", fmt::join(moved, ", "));
    return std::unexpected(why);
}

result<void> take_back(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    BANYAN_TRY(const auto aside, open_folder(top.get(), set_aside_folder, shown));
    BANYAN_CHECK(open_folder(aside.get(), step_name(step), step_folder(shown, step)));
    BANYAN_CHECK(move_name(aside.get(), top.get(), step_name(step), dir));
    BANYAN_CHECK(sync_folder(top.get(), dir));
    return sync_folder(aside.get(), shown);
}

}  // namespace banyan::ckpt
