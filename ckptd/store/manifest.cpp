// SPDX-License-Identifier: BSD-3-Clause
//
// The small files of a step as they are written: MANIFEST.json, COMMIT, latest; listing and removing steps.
#include <algorithm>
#include <functional>
#include <queue>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/crc32c.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::string_view step_prefix = "step-";

std::string to_json(const manifest& m) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const auto& f : m.files)
        files.push_back({{"path", shard_name(f.rank)},
                         {"rank", f.rank},
                         {"size", f.bytes},
                         {"crc32c", f.crc32c},
                         {"crc32c_4mib", f.chunks}});
    const nlohmann::ordered_json out{{"format", "banyan-ckpt 1"},  {"step", m.step},   {"job", m.job},
                                     {"generation", m.generation}, {"world", m.world}, {"files", files}};
    return out.dump(1) + "\n";
}

// The step's own COMMIT goes first and durably: a removal that stops half-way leaves no step that looks
// whole. Folders that somebody has put there stay, and with them the step's.
void remove_step(int top, const std::string& dir, std::uint64_t step) {
    const auto shown = step_folder(dir, step);
    const auto folder = open_folder(top, step_name(step), shown);
    if (!folder || ::unlinkat(folder->get(), "COMMIT", 0) != 0) return;
    if (!sync_folder(folder->get(), shown)) return;
    const auto remove = [&](const char* name) {
        ::unlinkat(folder->get(), name, 0);
        return true;
    };
    if (for_each_name(folder->get(), shown, remove)) ::unlinkat(top, step_name(step).c_str(), AT_REMOVEDIR);
}

bool has_commit(int top, const std::string& name) {
    const auto folder = open_folder(top, name, name);
    struct stat st {};
    return folder && ::fstatat(folder->get(), "COMMIT", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

result<std::vector<std::uint64_t>> list_in(int top, const std::string& dir) {
    // The smallest on top: a directory full of steps costs time, not memory.
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> newest;
    const auto look = [&](const char* entry) {
        const std::string_view name(entry);
        if (!name.starts_with(step_prefix) || name.size() != step_prefix.size() + step_digits) return true;
        const auto step = parse_number(name.substr(step_prefix.size()), max_step);
        if (!step || (newest.size() >= max_listed_steps && *step <= newest.top())) return true;
        if (!has_commit(top, std::string(name))) return true;
        newest.push(*step);
        if (newest.size() > max_listed_steps) newest.pop();
        return true;
    };
    BANYAN_CHECK(for_each_name(top, dir, look));
    std::vector<std::uint64_t> out;
    for (; !newest.empty(); newest.pop()) out.push_back(newest.top());
    std::reverse(out.begin(), out.end());
    return out;
}

}  // namespace

std::string step_name(std::uint64_t step) { return fmt::format("{}{:0{}}", step_prefix, step, step_digits); }

std::string step_folder(const std::string& dir, std::uint64_t step) {
    return fmt::format("{}/{}", dir, step_name(step));
}

std::string shard_name(std::uint32_t rank) { return fmt::format("rank-{:06}.safetensors", rank); }

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

result<void> open_step(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = step_folder(dir, step);
    if (auto made = create_folder(top.get(), step_name(step), modes_in(top.get()), shown); made)
        return sync_folder(top.get(), dir);
    // It is there, or it cannot be made: opening it tells.
    const auto folder = open_folder(top.get(), step_name(step), shown);
    if (!folder)
        return fail(folder.error().code, fmt::format("cannot make a new {}: {}", shown, folder.error().what));
    if (::unlinkat(folder->get(), "COMMIT", 0) != 0) {
        if (errno == ENOENT) return {};
        return fail_errno(fmt::format("cannot remove {}/COMMIT", shown), errno);
    }
    return sync_folder(folder->get(), shown);
}

result<void> commit_step(const storage_user& user, const std::string& dir, const manifest& m,
                         std::size_t keep) {
    const auto text = to_json(m);
    const auto crc = crc32c(std::as_bytes(std::span(text)));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    const auto shown = step_folder(dir, m.step);
    BANYAN_TRY(const auto folder, open_folder(top.get(), step_name(m.step), shown));
    const auto modes = modes_in(top.get());
    BANYAN_CHECK(replace_file(folder.get(), "MANIFEST.json", text, modes, shown + "/MANIFEST.json"));
    BANYAN_CHECK(replace_file(folder.get(), "COMMIT", fmt::format("{:08x} {}\n", crc, m.step), modes,
                              shown + "/COMMIT"));
    BANYAN_CHECK(replace_file(top.get(), "latest", step_name(m.step) + "\n", modes, dir + "/latest"));
    BANYAN_TRY(auto steps, list_in(top.get(), dir));
    // The step just committed stays whatever its number: a job that began again counts from below.
    std::erase(steps, m.step);
    for (std::size_t i = keep > 0 ? keep - 1 : 0; i < steps.size(); ++i)
        remove_step(top.get(), dir, steps[i]);
    return {};
}

result<std::vector<std::uint64_t>> list_steps(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto top = open_directory(dir);
    if (!top && top.error().code == errc::not_found) return std::vector<std::uint64_t>();
    if (!top) return std::unexpected(top.error());
    return list_in(top->get(), dir);
}

}  // namespace banyan::ckpt
