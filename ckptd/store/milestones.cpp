// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/milestones.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/protocol/state_name.hpp"
#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

std::string shown_in(const std::string& dir) { return fmt::format("{}/{}", dir, milestones_folder); }

result<milestones> read_all(int folder, const std::string& shown) {
    milestones out;
    result<void> read;
    const auto look = [&](const char* entry) {
        const std::string name(entry);
        if (!is_state_name(name)) return true;
        if (out.size() == max_milestones)
            read = fail(errc::exhausted, fmt::format("{} has more than {} names", shown, max_milestones));
        if (!read) return false;
        const auto file = fmt::format("{}/{}", shown, name);
        auto text = read_small(folder, name, file, 32);
        if (!text && text.error().code == errc::not_found) return true;  // it went meanwhile
        if (!text) read = std::unexpected(text.error());
        if (!read) return false;
        const auto step = parse_number(std::string_view(*text).substr(0, text->find('\n')), max_step);
        if (!step)
            read = fail(errc::invalid_input, fmt::format("{} has no number of a step", file), "remove it");
        else
            out.emplace(name, *step);
        return read.has_value();
    };
    BANYAN_CHECK(for_each_name(folder, shown, look));
    BANYAN_CHECK(read);
    return out;
}

result<void> has_room(int folder, const std::string& shown) {
    std::size_t names = 0;
    const auto count = [&](const char*) { return ++names < max_milestones; };
    BANYAN_CHECK(for_each_name(folder, shown, count));
    if (names < max_milestones) return {};
    return fail(errc::exhausted, fmt::format("{} has {} names already", shown, names),
                "banyan-ckpt drop DIR/milestones/NAME removes one");
}

}  // namespace

std::optional<std::uint64_t> milestone_step(const std::vector<std::uint64_t>& committed,
                                            std::uint64_t asked) {
    std::optional<std::uint64_t> oldest;
    for (const auto step : committed)
        if (step >= asked && (!oldest || step < *oldest)) oldest = step;
    return oldest;
}

named_steps assign_milestones(const milestones& all, const std::vector<std::uint64_t>& committed) {
    named_steps out;
    for (const auto& [name, asked] : all) {
        if (const auto is = milestone_step(committed, asked))
            out.at[*is].push_back(name);
        else
            out.pending.emplace(name, asked);
    }
    return out;
}

std::optional<std::string> milestone_due(const std::vector<std::uint64_t>& committed, std::uint64_t step,
                                         std::uint64_t every) {
    if (every == 0 || step < every) return {};
    const auto first = step - step % every;
    if (milestone_step(committed, first) < step) return {};
    return fmt::format("step-{}", step);
}

result<void> set_milestone(const storage_user& user, const std::string& dir, const std::string& name,
                           std::uint64_t step) {
    BANYAN_CHECK(check_state_name(name));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = shown_in(dir);
    const std::string folder_name(milestones_folder);
    if (!is_there(top.get(), folder_name)) {
        const auto made = create_folder(top.get(), folder_name, modes_in(top.get()), shown);
        if (!made && !is_there(top.get(), folder_name)) return std::unexpected(made.error());
        BANYAN_CHECK(sync_folder(top.get(), dir));
    }
    BANYAN_TRY(const auto folder, open_folder(top.get(), folder_name, shown));
    if (!is_there(folder.get(), name)) BANYAN_CHECK(has_room(folder.get(), shown));
    return replace_file(folder.get(), name, fmt::format("{}\n", step), modes_in(folder.get()),
                        fmt::format("{}/{}", shown, name));
}

result<milestones> list_milestones(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = shown_in(dir);
    const auto folder = open_folder(top.get(), std::string(milestones_folder), shown);
    if (!folder && folder.error().code == errc::not_found) return milestones();
    if (!folder) return std::unexpected(folder.error());
    return read_all(folder->get(), shown);
}

result<void> drop_milestone(const storage_user& user, const std::string& dir, const std::string& name) {
    BANYAN_CHECK(check_state_name(name));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = shown_in(dir);
    BANYAN_TRY(const auto folder, open_folder(top.get(), std::string(milestones_folder), shown));
    if (::unlinkat(folder.get(), name.c_str(), 0) != 0)
        return fail_errno(fmt::format("cannot remove {}/{}", shown, name), errno);
    return sync_folder(folder.get(), shown);
}

std::optional<milestone_path> milestone_of(const std::string& path) {
    const std::filesystem::path whole(path);
    const auto folder = whole.parent_path();
    std::error_code none;
    // A checkpoint directory may have such a path, too.
    if (folder.filename() != milestones_folder || !std::filesystem::is_regular_file(whole, none)) return {};
    const auto dir = folder.parent_path().string();
    return milestone_path{dir.empty() ? "." : dir, whole.filename().string()};
}

result<std::uint64_t> find_milestone(const storage_user& user, const milestone_path& at) {
    BANYAN_TRY(const auto named, list_milestones(user, at.dir));
    const auto asked = named.find(at.name);
    if (asked == named.end())
        return fail(errc::not_found, fmt::format("{} has no milestone {}", at.dir, at.name));
    BANYAN_TRY(const auto committed, list_steps(user, at.dir));
    if (const auto step = milestone_step(committed, asked->second)) return *step;
    return fail(errc::not_found,
                fmt::format("milestone {} of {} is not in storage yet: no step from {} on is", at.name,
                            at.dir, asked->second));
}

}  // namespace banyan::ckpt
