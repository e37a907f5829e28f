// SPDX-License-Identifier: BSD-3-Clause
//
// A step's shards to another directory. Each is checked while it is copied, and has its name only when it is
// whole.
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

struct target {
    int folder;
    std::string shown;
    bool replace;
};

result<void> must_not_be(const target& to, const std::string& name) {
    struct stat st {};
    if (to.replace || ::fstatat(to.folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return {};
    return fail(errc::conflict, fmt::format("{}/{} is there already", to.shown, name),
                "--force replaces it, or take another directory");
}

// rename(2) that does not replace, where the file system has it; else link(2) refuses as well.
bool take_name(const target& to, const std::string& from, const std::string& name) {
    if (to.replace) return ::renameat(to.folder, from.c_str(), to.folder, name.c_str()) == 0;
    if (::renameat2(to.folder, from.c_str(), to.folder, name.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    return ::linkat(to.folder, from.c_str(), to.folder, name.c_str(), 0) == 0 &&
           ::unlinkat(to.folder, from.c_str(), 0) == 0;
}

result<void> copy_shard(const std::string& dir, std::uint64_t step, const shard_file& f, const target& to) {
    const auto name = shard_name(f.rank), temporary = unused_name(name), path = to.shown + "/" + name;
    BANYAN_CHECK(must_not_be(to, name));
    BANYAN_TRY(const auto fd, create_file(to.folder, temporary, O_WRONLY, modes_in(to.folder), path));
    off_t at = 0;
    auto done = for_each_chunk(myself(), dir, step, f, [&](std::span<const std::byte> chunk) {
        auto put = write_all(fd.get(), chunk, at, path);
        at += static_cast<off_t>(chunk.size());
        return put;
    });
    if (done && ::fsync(fd.get()) != 0) done = fail_errno(fmt::format("cannot sync {}", path), errno);
    if (done && !take_name(to, temporary, name))
        done = fail_errno(fmt::format("cannot rename to {}", path), errno);
    if (!done) ::unlinkat(to.folder, temporary.c_str(), 0);
    return done;
}

result<std::uint64_t> choose(const step_path& from) {
    if (from.step) return *from.step;
    BANYAN_CHECK(steps_in(from.dir));
    const auto damaged = [](std::uint64_t, const error& why) { complain(why); };
    BANYAN_TRY(const auto newest, newest_whole_step(myself(), from.dir, 0, std::nullopt, damaged));
    if (!newest) return fail(errc::not_found, fmt::format("no whole step in {}", from.dir));
    return newest->step;
}

result<void> copy_step(const step_path& from, const std::string& to, std::optional<std::uint32_t> rank,
                       bool replace) {
    BANYAN_TRY(const auto step, choose(from));
    // All of the manifest first: what it says counts only then, and it names what must not be there.
    std::optional<std::uint32_t> others;  // whose file has that rank's parts of tensors
    const auto note = [&](const shard_file& f) {
        if (rank && f.rank == *rank) others = f.pieces_in;
    };
    BANYAN_TRY(const auto head, scan_step(myself(), from.dir, step, 0, note));
    if (rank && *rank >= head.world)
        return fail(errc::not_found,
                    fmt::format("step {} has {} ranks, no rank {}", step, head.world, *rank));
    BANYAN_TRY(const auto folder, make_directory(to));
    const target where{folder.get(), to, replace};
    result<void> done;
    std::uint64_t files = 0, bytes = 0;
    const auto each = [&](const std::function<result<void>(const shard_file&)>& what) -> result<void> {
        const auto one = [&](const shard_file& f) {
            if (done && (!rank || f.rank == *rank || f.rank == others)) done = what(f);
        };
        const auto scanned = scan_step(myself(), from.dir, step, 0, one);
        if (!scanned) return std::unexpected(scanned.error());
        return done;
    };
    const auto copy = [&](const shard_file& f) {
        auto copied = copy_shard(from.dir, step, f, where);
        if (!copied) return copied;
        ++files;
        bytes += f.bytes;
        return copied;
    };
    BANYAN_CHECK(each([&](const shard_file& f) { return must_not_be(where, shard_name(f.rank)); }));
    BANYAN_CHECK(each(copy));
    BANYAN_CHECK(sync_folder(folder.get(), to));
    fmt::print("step {}: {} files, {}, in {}\n", step, files, format_bytes(bytes), printable(to));
    return {};
}

}  // namespace

int export_step(const std::string& path, const std::string& to, std::optional<std::uint32_t> rank,
                bool replace) {
    std::error_code none;
    const auto absolute = std::filesystem::absolute(to, none);
    const auto done = copy_step(parse_path(path), none ? to : absolute.string(), rank, replace);
    if (done) return 0;
    complain(done.error());
    return 1;
}

}  // namespace banyan::ckpt::cli
