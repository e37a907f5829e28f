// SPDX-License-Identifier: BSD-3-Clause
//
// A step's way from its flush's folder to its name: MANIFEST.json, a look at every file, COMMIT, the rename;
// then latest. And later, what it makes superfluous goes.
#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/store/leftovers.hpp"
#include "ckptd/store/milestones.hpp"
#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/crc32c.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t named_ranks = 8;  // in a message

std::string to_json(const manifest& m) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const auto& f : m.files) {
        files.push_back({{"path", shard_name(f.rank)},
                         {"rank", f.rank},
                         {"size", f.bytes},
                         {"crc32c", f.crc32c},
                         {"crc32c_4mib", f.chunks}});
        if (f.pieces_in) files.back()["pieces_in"] = *f.pieces_in;
    }
    const nlohmann::ordered_json out{{"format", "banyan-ckpt 1"},  {"step", m.step},   {"job", m.job},
                                     {"generation", m.generation}, {"world", m.world}, {"files", files}};
    return out.dump(1) + "\n";
}

// Every node has said that its files are written. Whether they are in this directory, only looking tells: the
// same path may be another one on each node.
result<void> see_files(int folder, const manifest& m, const claim& owner, const std::string& shown) {
    std::string unseen;
    std::size_t count = 0;
    for (const auto& f : m.files) {
        struct stat st {};
        const auto name = shard_name(f.rank);
        if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            if (static_cast<std::uint64_t>(st.st_size) == f.bytes) continue;
            return fail(errc::unavailable,
                        fmt::format("{}/{} has {} bytes as node {} sees it, and {} were written", shown, name,
                                    st.st_size, owner.node, f.bytes));
        }
        if (count < named_ranks) unseen += fmt::format("{}{}", count == 0 ? "" : ", ", f.rank);
        if (count++ == named_ranks) unseen += ", ...";
    }
    if (count == 0) return {};
    return fail(errc::not_found,
                fmt::format("the files of rank{} {} of step {} are not to be seen from node {}",
                            count == 1 ? "" : "s", unseen, m.step, owner.node),
                fmt::format("is {} a directory that all nodes of the job share?", owner.dir));
}

// The step's own COMMIT goes first and durably: a removal that stops half-way leaves no step that looks
// whole. What somebody else has put there stays, and with it the step's folder.
void remove_step(int top, const std::string& dir, std::uint64_t step) {
    const auto shown = step_folder(dir, step);
    const auto folder = open_folder(top, step_name(step), shown);
    if (!folder || ::unlinkat(folder->get(), "COMMIT", 0) != 0) return;
    if (!sync_folder(folder->get(), shown)) return;
    const auto remove = [&](const char* name) {
        if (is_in_a_step(name)) ::unlinkat(folder->get(), name, 0);
        return true;
    };
    if (for_each_name(folder->get(), shown, remove)) ::unlinkat(top, step_name(step).c_str(), AT_REMOVEDIR);
}

// The act of commit. A step of that number is there when the job has been there before, in an older
// generation: the one that runs continues from something else, and only its own state fits what it saves
// next.
result<void> take_name(int top, const claim& owner, const std::string& flush, std::uint64_t step) {
    const auto shown = step_folder(owner.dir, step);
    const auto name = step_name(step);
    const auto aside = replaced_name(step);
    const auto refuse = [&] { return fail_errno(fmt::format("cannot rename to {}", shown), errno); };
    const auto old = open_folder(top, name, shown);
    if (!old && old.error().code != errc::not_found) return std::unexpected(old.error());
    bool exchanged = false;
    if (old) {
        exchanged = ::renameat2(top, flush.c_str(), top, name.c_str(), RENAME_EXCHANGE) == 0;
        if (!exchanged && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return refuse();
        // Readers know to look for it there.
        if (!exchanged) BANYAN_CHECK(put_away(top, aside, owner.dir));
        if (!exchanged && ::renameat(top, name.c_str(), top, aside.c_str()) != 0) return refuse();
    }
    if (!exchanged && ::renameat(top, flush.c_str(), top, name.c_str()) != 0) {
        const int err = errno;
        if (old) ::renameat(top, aside.c_str(), top, name.c_str());
        errno = err;
        return refuse();
    }
    BANYAN_CHECK(sync_folder(top, owner.dir));
    return put_away(top, exchanged ? flush : aside, owner.dir);
}

std::vector<std::uint64_t> superfluous(std::vector<std::uint64_t> committed, std::uint64_t step,
                                       const milestones& named, std::size_t newest) {
    const auto stays = assign_milestones(named, committed).at;
    // The step just committed stays whatever its number: a job that began again counts from below.
    std::erase(committed, step);
    committed.erase(committed.begin(),
                    committed.begin() + std::min(newest > 0 ? newest - 1 : 0, committed.size()));
    std::erase_if(committed, [&](auto old) { return stays.contains(old); });
    return committed;
}

}  // namespace

result<std::string> open_flush(const storage_user& user, const claim& owner) {
    BANYAN_CHECK(check_claim(user, owner));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(owner.dir));
    const auto random = unused_name("x").substr(3);
    const auto name = fmt::format("{}{}.{:x}.{}", flush_prefix, owner.job, owner.generation, random);
    BANYAN_CHECK(create_folder(top.get(), name, modes_in(top.get()), owner.dir + "/" + name));
    BANYAN_CHECK(sync_folder(top.get(), owner.dir));
    return name;
}

result<void> commit_step(const storage_user& user, const claim& owner, const std::string& flush,
                         const manifest& m) {
    const auto text = to_json(m);
    const auto crc = crc32c(std::as_bytes(std::span(text)));
    const auto& dir = owner.dir;
    const auto before = scan_step(user, dir, m.step, 0);
    if (before && before->job == m.job && before->generation > m.generation)
        return fail(errc::conflict,
                    fmt::format("{} is of a newer generation already", step_folder(dir, m.step)));
    {
        BANYAN_TRY(const auto identity, as_user::take(user));
        BANYAN_TRY(const auto top, open_directory(dir));
        const auto shown = dir + "/" + flush;
        BANYAN_TRY(const auto folder, open_folder(top.get(), flush, shown));
        const auto modes = modes_in(top.get());
        BANYAN_CHECK(replace_file(folder.get(), "MANIFEST.json", text, modes, shown + "/MANIFEST.json"));
        BANYAN_CHECK(see_files(folder.get(), m, owner, shown));
        BANYAN_CHECK(replace_file(folder.get(), "COMMIT", fmt::format("{:08x} {}\n", crc, m.step), modes,
                                  shown + "/COMMIT"));
    }
    BANYAN_CHECK(check_claim(user, owner));
    BANYAN_TRY(const auto identity, as_user::take(user));
    BANYAN_TRY(const auto top, open_directory(dir));
    BANYAN_CHECK(take_name(top.get(), owner, flush, m.step));
    return replace_file(top.get(), "latest", step_name(m.step) + "\n", modes_in(top.get()), dir + "/latest");
}

result<void> remove_older_steps(const storage_user& user, const claim& owner, std::uint64_t step,
                                const keep_rule& keep) {
    std::vector<std::uint64_t> committed;
    {
        BANYAN_TRY(const auto identity, as_user::take(user));
        BANYAN_TRY(const auto top, open_directory(owner.dir));
        BANYAN_TRY(committed, committed_in(top.get(), owner.dir, unseen::left_out));
    }
    if (const auto name = milestone_due(committed, step, keep.milestone))
        BANYAN_CHECK(set_milestone(user, owner.dir, *name, step));
    BANYAN_TRY(const auto named, list_milestones(user, owner.dir));
    for (const auto old : superfluous(committed, step, named, keep.newest)) {
        // The step is committed, whoever has the directory now; but what goes is the owner's to say.
        if (!check_claim(user, owner)) break;
        BANYAN_TRY(const auto identity, as_user::take(user));
        BANYAN_TRY(const auto top, open_directory(owner.dir));
        remove_step(top.get(), owner.dir, old);
    }
    return {};
}

void drop_flush(const storage_user& user, const std::string& dir, const std::string& flush) {
    const auto identity = as_user::take(user);
    if (!identity || !is_flush_name(flush)) return;
    if (const auto top = open_directory(dir)) (void)put_away(top->get(), flush, dir);
}

}  // namespace banyan::ckpt
