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

result<void> is_free(int folder, const std::string& name, const std::string& shown) {
    if (!is_there(folder, name)) return {};
    return fail(errc::conflict, fmt::format("{}/{} is there already", shown, name),
                "nothing is replaced: move one of the two elsewhere first");
}

result<void> move_name(int from, int to, const std::string& name, const std::string& as,
                       const std::string& shown) {
    BANYAN_CHECK(is_free(to, as, shown));
    if (::renameat(from, name.c_str(), to, as.c_str()) == 0) return {};
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

/// A name that goes, and the one that it gets.
struct renaming {
    std::string name, as;
};
/// One that a commit was about to replace is the step of its number, and gets that name, unless the other is
/// there, too; then it goes first: alone it would be the step, had this been stopped between the two.
std::vector<renaming> moves_of(int top, std::uint64_t step) {
    const auto plain = step_name(step), replaced = replaced_name(step);
    const bool two = is_there(top, plain);
    std::vector<renaming> out;
    if (is_there(top, replaced)) out.push_back({replaced, two ? replaced : plain});
    if (two) out.push_back({plain, plain});
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
            for (const auto& one : moves_of(top, other)) BANYAN_CHECK(is_free(aside.get(), one.as, shown));
        for (const auto other : newer) {
            for (const auto& one : moves_of(top, other))
                BANYAN_CHECK(move_name(top, aside.get(), one.name, one.as, shown));
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

result<void> can_take_back(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    BANYAN_TRY(const auto aside, open_folder(top.get(), set_aside_folder, shown));
    BANYAN_CHECK(open_folder(aside.get(), present_name(aside.get(), step), step_folder(shown, step)));
    return is_free(top.get(), present_name(top.get(), step), dir);
}

result<void> take_back(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_CHECK(can_take_back(user, dir, step));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = fmt::format("{}/{}", dir, set_aside_folder);
    BANYAN_TRY(const auto aside, open_folder(top.get(), set_aside_folder, shown));
    BANYAN_CHECK(move_name(aside.get(), top.get(), present_name(aside.get(), step), step_name(step), dir));
    BANYAN_CHECK(sync_folder(top.get(), dir));
    return sync_folder(aside.get(), shown);
}

}  // namespace banyan::ckpt
