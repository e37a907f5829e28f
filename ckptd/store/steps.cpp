// SPDX-License-Identifier: BSD-3-Clause
//
// Names of steps; which of them are committed.
#include "ckptd/store/steps.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <queue>
#include <unordered_set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::string_view step_prefix = "step-";

// One that is damaged has been committed: what is left of it is for whoever reads it to say. Nothing: it
// could not be looked at.
std::optional<bool> has_commit(int top, const std::string& name, const std::string& shown) {
    const auto folder = open_folder(top, name, shown);
    struct stat st {};
    if (!folder && folder.error().code == errc::not_found) return false;
    if (!folder && ::fstatat(top, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        return false;
    if (!folder && folder.error().code == errc::invalid_input) return true;
    if (!folder) return std::nullopt;
    if (::fstatat(folder->get(), "COMMIT", &st, AT_SYMLINK_NOFOLLOW) == 0) return S_ISREG(st.st_mode);
    if (errno == ENOENT || is_damage(errno)) return errno != ENOENT;
    return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> step_of(std::string_view name) {
    if (!name.starts_with(step_prefix) || name.size() != step_prefix.size() + step_digits) return {};
    const auto step = parse_number(name.substr(step_prefix.size()), max_step);
    return step ? std::optional(*step) : std::nullopt;
}

std::string replaced_name(std::uint64_t step) {
    return fmt::format("{}{}", replaced_prefix, step_name(step));
}

bool is_there(int folder, const std::string& name) {
    struct stat st {};
    return ::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

std::string present_name(int top, std::uint64_t step) {
    const bool aside = !is_there(top, step_name(step)) && is_there(top, replaced_name(step));
    return aside ? replaced_name(step) : step_name(step);
}

result<unique_fd> open_for_reading(const std::string& dir) {
    auto top = open_directory(dir);
    if (!top && top.error().code == errc::not_found)
        return fail(errc::unavailable, top.error().what, "is it mounted on this node?");
    return top;
}

result<unique_fd> open_step_folder(int top, const std::string& dir, std::uint64_t step) {
    const auto shown = step_folder(dir, step);
    auto folder = open_folder(top, step_name(step), shown);
    // Where the file system cannot exchange two names the old folder steps aside for a moment; by the time we
    // look there the new one may be in place.
    for (int attempt = 0; attempt < 3 && !folder && folder.error().code == errc::not_found; ++attempt) {
        if (auto aside = open_folder(top, replaced_name(step), shown)) return aside;
        folder = open_folder(top, step_name(step), shown);
    }
    return folder;
}

result<std::vector<std::uint64_t>> committed_in(int top, const std::string& dir, unseen of) {
    // The smallest on top: a directory full of steps costs time, not memory.
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> newest;
    std::unordered_set<std::uint64_t> listed;
    const auto look = [&](const char* entry) {
        std::string_view name(entry);
        if (name.starts_with(replaced_prefix)) name.remove_prefix(replaced_prefix.size());
        const auto step = step_of(name);
        if (!step || (newest.size() >= max_listed_steps && *step <= newest.top())) return true;
        if (listed.contains(*step)) return true;
        const auto is_there = has_commit(top, entry, fmt::format("{}/{}", dir, entry));
        if (!is_there.value_or(of == unseen::listed)) return true;
        listed.insert(*step);
        newest.push(*step);
        if (newest.size() > max_listed_steps) {
            listed.erase(newest.top());
            newest.pop();
        }
        return true;
    };
    BANYAN_CHECK(for_each_name(top, dir, look));
    std::vector<std::uint64_t> out;
    for (; !newest.empty(); newest.pop()) out.push_back(newest.top());
    std::reverse(out.begin(), out.end());
    return out;
}

result<void> renew_latest(int top, const std::string& dir) {
    const auto shown = dir + "/latest";
    BANYAN_TRY(auto there, committed_in(top, dir, unseen::left_out));
    // Somebody else may have moved steps since the look, and written before this one: whoever writes last has
    // looked after it.
    for (std::optional<std::vector<std::uint64_t>> before; before != there;) {
        if (!there.empty())
            BANYAN_CHECK(replace_file(top, "latest", step_name(there.front()) + "\n", modes_in(top), shown));
        else if (::unlinkat(top, "latest", 0) != 0 && errno != ENOENT)
            return fail_errno(fmt::format("cannot remove {}", shown), errno);
        before = there;
        BANYAN_TRY(there, committed_in(top, dir, unseen::left_out));
    }
    return {};
}

std::string step_name(std::uint64_t step) { return fmt::format("{}{:0{}}", step_prefix, step, step_digits); }

std::string step_folder(const std::string& dir, std::uint64_t step) {
    return fmt::format("{}/{}", dir, step_name(step));
}

std::string shard_name(std::uint32_t rank) {
    return fmt::format("rank-{:0{}}.safetensors", rank, shard_digits);
}

result<void> prepare_directory(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, make_directory(dir));
    // access() asks for the real uid; only trying tells what this identity may do, on every file system.
    const auto probe = unused_name("banyan-probe");
    const auto made = create_file(top.get(), probe, O_WRONLY, {}, dir + "/" + probe);
    if (!made)
        return fail(made.error().code,
                    fmt::format("the checkpoint directory {} is not writable for uid {}: {}", dir, user.uid,
                                made.error().what));
    ::unlinkat(top.get(), probe.c_str(), 0);
    return {};
}

result<std::vector<std::uint64_t>> list_steps(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto top = open_directory(dir);
    if (!top && top.error().code == errc::not_found) return std::vector<std::uint64_t>();
    if (!top) return std::unexpected(top.error());
    return committed_in(top->get(), dir);
}

bool is_in_use(const storage_user& user, const std::string& dir) {
    const auto identity = as_user::take(user);
    const auto top = open_directory(dir);
    struct stat st {};
    struct statvfs of {};
    if (!identity || !top || ::fstat(top->get(), &st) != 0) return false;
    return st.st_uid != 0 || (::fstatvfs(top->get(), &of) == 0 && (of.f_flag & ST_RDONLY) != 0);
}

}  // namespace banyan::ckpt
