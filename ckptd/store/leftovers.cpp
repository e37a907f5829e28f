// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/leftovers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"

namespace banyan::ckpt {
namespace {

// A rank's shard, or a temporary name of one.
bool is_shard(std::string_view name) {
    constexpr std::string_view prefix = "rank-", suffix = ".safetensors";
    const bool temporary = name.starts_with('.');
    if (temporary) name.remove_prefix(1);
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    const auto digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits >= shard_digits && (temporary ? name.starts_with(suffix) : name == suffix);
}

// What is not banyan's stays in it: who may rename in the directory may have put another folder there.
void empty_and_remove(int top, const std::string& name, const std::string& shown) {
    const auto folder = open_folder(top, name, shown);
    if (!folder) return;
    const auto remove = [&](const char* file) {
        if (is_in_a_step(file) || std::string_view(file) == "COMMIT") ::unlinkat(folder->get(), file, 0);
        return true;
    };
    if (for_each_name(folder->get(), shown, remove)) ::unlinkat(top, name.c_str(), AT_REMOVEDIR);
}

// A step's folder that has no COMMIT: left by a removal that stopped half-way, or by a release of banyan that
// wrote a step where it stays. What is not banyan's stays in it.
void remove_unfinished(int top, const std::string& name, const std::string& shown) {
    const auto folder = open_folder(top, name, shown);
    struct stat st {};
    if (!folder || ::fstatat(folder->get(), "COMMIT", &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return;
    const auto remove = [&](const char* file) {
        if (is_in_a_step(file)) ::unlinkat(folder->get(), file, 0);
        return true;
    };
    if (for_each_name(folder->get(), shown, remove)) ::unlinkat(top, name.c_str(), AT_REMOVEDIR);
}

// A file of ours that was to be renamed or removed at once: unused_name() of what is written here. Whoever
// makes one now may miss it, and tries again.
bool is_temporary(std::string_view name) {
    constexpr std::string_view stems[] = {".banyan-probe.", ".latest."};
    constexpr std::size_t digits = 16;
    return std::ranges::any_of(stems, [&](const auto& stem) {
        return name.size() == stem.size() + digits && name.starts_with(stem) &&
               name.find_first_not_of("0123456789abcdef", stem.size()) == name.npos;
    });
}

// A commit that stopped between its two renames: the old step gets its name back. When the new one is in
// place the old one goes.
result<void> end_replacement(int top, const std::string& aside, const std::string& dir) {
    const auto name = aside.substr(replaced_prefix.size());
    if (!step_of(name)) return {};
    struct stat st {};
    if (::fstatat(top, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return put_away(top, aside, dir);
    if (errno == ENOENT && ::renameat(top, aside.c_str(), top, name.c_str()) == 0) return {};
    return fail_errno(fmt::format("cannot rename {}/{}", dir, aside), errno);
}

}  // namespace

bool is_in_a_step(std::string_view name) {
    return name == "MANIFEST.json" || is_shard(name) || name.starts_with(".MANIFEST.json.") ||
           name.starts_with(".COMMIT.");
}

bool is_flush_name(std::string_view name) {
    const auto plain = [](char c) { return c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return name.size() < 128 && name.starts_with(flush_prefix) &&
           std::all_of(name.begin() + flush_prefix.size(), name.end(), plain);
}

result<void> put_away(int top, const std::string& name, const std::string& dir) {
    const auto away = fmt::format("{}{}", trash_prefix, unused_name("x").substr(3));
    if (::renameat(top, name.c_str(), top, away.c_str()) != 0) {
        if (errno == ENOENT) return {};
        return fail_errno(fmt::format("cannot put away {}/{}", dir, name), errno);
    }
    empty_and_remove(top, away, fmt::format("{}/{}", dir, away));
    return {};
}

result<void> put_away_flushes(int top, const std::string& dir) {
    std::vector<std::string> flushes, trash, replaced, steps, temporary;
    const auto look = [&](const char* entry) {
        const std::string_view name(entry);
        if (is_flush_name(name)) flushes.emplace_back(name);
        if (name.starts_with(trash_prefix)) trash.emplace_back(name);
        if (name.starts_with(replaced_prefix)) replaced.emplace_back(name);
        if (step_of(name)) steps.emplace_back(name);
        if (is_temporary(name)) temporary.emplace_back(name);
        return true;
    };
    BANYAN_CHECK(for_each_name(top, dir, look));
    for (const auto& name : temporary) ::unlinkat(top, name.c_str(), 0);
    for (const auto& name : flushes) BANYAN_CHECK(put_away(top, name, dir));
    for (const auto& name : trash) empty_and_remove(top, name, fmt::format("{}/{}", dir, name));
    for (const auto& name : replaced) BANYAN_CHECK(end_replacement(top, name, dir));
    for (const auto& name : steps) remove_unfinished(top, name, fmt::format("{}/{}", dir, name));
    return {};
}

}  // namespace banyan::ckpt
