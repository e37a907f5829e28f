// SPDX-License-Identifier: BSD-3-Clause
//
// A step that somebody wants no more.
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/leftovers.hpp"
#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"

namespace banyan::ckpt {

result<void> drop_step(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = step_folder(dir, step);
    const auto name = present_name(top.get(), step);
    // A link or a file of that name is nobody's step.
    const auto folder = open_folder(top.get(), name, shown);
    if (!folder) return std::unexpected(folder.error());
    // What it has replaced may still be there after a crash, and would be the step of that number then.
    if (name == step_name(step)) BANYAN_CHECK(put_away(top.get(), replaced_name(step), dir));
    const auto away = fmt::format("{}{}", trash_prefix, unused_name("x").substr(3));
    if (::renameat(top.get(), name.c_str(), top.get(), away.c_str()) != 0)
        return fail_errno(fmt::format("cannot rename {}", shown), errno);
    // Before the first file goes: else the name could come back after a crash, with files missing.
    BANYAN_CHECK(sync_folder(top.get(), dir));
    BANYAN_CHECK(renew_latest(top.get(), dir));
    return put_away(top.get(), away, dir);
}

}  // namespace banyan::ckpt
