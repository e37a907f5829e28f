// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints in storage, as the job's user:
//
//     DIR/OWNER.7                                     whose directory it is (owner.hpp)
//     DIR/.flush.12.100000001.RANDOM/                 a step while it is gathered
//     DIR/step-000000000050/rank-000003.safetensors   one file per rank
//     DIR/step-000000000050/MANIFEST.json             after all of them
//     DIR/step-000000000050/COMMIT                    last: the manifest's CRC-32C
//     DIR/latest                                      name of the newest committed step's folder
//     DIR/milestones/best                             number of a step that stays (milestones.hpp)
//
// The leader makes a flush's folder, all write their files into it, each by temporary name, fsync, rename,
// fsync of the folder; the leader looks whether it sees them all, writes MANIFEST.json and COMMIT, and
// renames the folder: that is the commit. Presumed abort: a step without a COMMIT that fits its manifest does
// not exist. What is made is the user's alone unless the directory is one for sharing (user_dir.hpp). All
// calls block: from the daemon on its storage threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ckptd/store/as_user.hpp"
#include "ckptd/store/owner.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

struct shard_file {
    std::uint32_t rank = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
    std::vector<std::uint32_t> chunks;  ///< CRC-32C per 4 MiB
    /// The rank, a lower one, whose file has this rank's parts of tensors, which are the same: this file has
    /// the rest.
    std::optional<std::uint32_t> pieces_in{};
};

struct manifest {
    std::uint64_t job = 0;
    std::uint64_t step = 0;
    std::uint64_t generation = 0;
    std::uint32_t world = 0;
    std::vector<shard_file> files;  ///< one per rank, ascending
};

/// Name and path of a step's folder.
std::string step_name(std::uint64_t step);
std::string step_folder(const std::string& dir, std::uint64_t step);
std::string shard_name(std::uint32_t rank);
/// The step whose folder has this name; nothing when it is no such name.
std::optional<std::uint64_t> step_of(std::string_view name);

/// What a step's manifest says of the whole.
struct step_summary {
    std::uint64_t job = 0;
    std::uint64_t step = 0;
    std::uint64_t generation = 0;
    std::uint32_t world = 0;
    std::uint64_t bytes = 0;  ///< of all files
};

/// Makes the directory if it is missing (mode 0700) and proves that the user can write there.
result<void> prepare_directory(const storage_user& user, const std::string& dir);

/// Makes the folder in which a step is gathered, after a look whether the directory is still ours, and
/// returns its name. No step is named yet: which one it becomes is known when storage has answered.
result<std::string> open_flush(const storage_user& user, const claim& owner);

/// Writes one shard into the flush's folder, which somebody else has made. `chunks` are the checksums
/// computed when the shard was sealed: what is read from memory now is compared with them, so that damage
/// never gets the shard's name. `written` is called with the bytes of each piece, from several threads.
/// `writer` tells nodes apart that write the same at once: the file has its own name only when it is whole.
result<shard_file> write_shard(const storage_user& user, const std::string& dir, const std::string& flush,
                               std::uint64_t step, std::uint32_t rank, std::span<const std::byte> image,
                               const std::vector<std::uint32_t>& chunks,
                               const std::function<void(std::uint64_t)>& written,
                               const std::string& writer = {});

/// MANIFEST.json, a look at every file, COMMIT, the folder gets the step's name, and latest. An older
/// generation's step of the same number is replaced without a moment in which neither is there.
/// errc::conflict: the directory is not ours any more, nothing was done.
result<void> commit_step(const storage_user& user, const claim& owner, const std::string& flush,
                         const manifest& m);
/// Which committed steps stay.
struct keep_rule {
    std::size_t newest = 1;
    std::uint64_t milestone = 0;  ///< the first one at or after each multiple of it, too; 0 = none
};
/// After that of `step`: the committed steps but it, the newest others and the milestones (milestones.hpp)
/// go, unless the directory is not ours any more. To give gigabytes back takes a file system a while.
result<void> remove_older_steps(const storage_user& user, const claim& owner, std::uint64_t step,
                                const keep_rule& keep);
/// A committed step goes: out of sight by one durable rename, then with its files; `latest` names the newest
/// that is left. errc::not_found: there is none of this number.
result<void> drop_step(const storage_user& user, const std::string& dir, std::uint64_t step);
/// Where steps lie that are to be kept and not to be begun from: a folder of the checkpoint directory, with
/// the same names in it.
constexpr const char* set_aside_folder = "set-aside";
/// Moves the committed steps that are newer than `step` there, the newest first, and returns them. Nobody may
/// own the directory meanwhile. errc::conflict: one of that number lies there already, and nothing was moved.
/// Any other error tells what was moved before it; `latest` is right in each case.
result<std::vector<std::uint64_t>> set_newer_aside(const storage_user& user, const std::string& dir,
                                                   std::uint64_t step);
/// The opposite, for one step. errc::conflict: the directory has one of that number. Whether it would be
/// that, before anything is moved.
result<void> can_take_back(const storage_user& user, const std::string& dir, std::uint64_t step);
result<void> take_back(const storage_user& user, const std::string& dir, std::uint64_t step);
/// A flush that came to nothing: its folder goes.
void drop_flush(const storage_user& user, const std::string& dir, const std::string& flush);

constexpr std::size_t max_listed_steps = 1024;
/// Steps that have a COMMIT, newest first, at most max_listed_steps. A missing directory has none. One of
/// which that could not be seen is among them, for the others do not stand for it; to read it says why.
result<std::vector<std::uint64_t>> list_steps(const storage_user& user, const std::string& dir);
/// The directory is there, and no folder of root's that something is to be mounted on: it is another user's,
/// or of a file system that is read-only.
bool is_in_use(const storage_user& user, const std::string& dir);

/// Reads the manifest of a step as a stream, in memory for one file's entry, and checks it against its
/// COMMIT. `world`: a manifest of another number of ranks, or larger than that many could need, is refused; 0
/// = any. `each` gets every entry, in order of ranks, before the check is done: what it keeps counts only
/// when the whole succeeds. errc::invalid_input, not_found: it was seen to be damaged, or gone. Any other
/// error: storage could not look, or did not let us, as where `dir` itself is missing.
result<step_summary> scan_step(const storage_user& user, const std::string& dir, std::uint64_t step,
                               std::uint32_t world, const std::function<void(const shard_file&)>& each = {});

/// Reads one shard into `into` (at least file.bytes) and checks size and checksums. `gives` is called with
/// the number of each chunk that storage has given. errc::invalid_input: it is damaged, also where storage
/// says so of what is in the file (EUCLEAN, EBADMSG). errc::unavailable: storage could not look (EIO, too).
result<void> read_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                        const shard_file& file, std::span<std::byte> into,
                        const std::function<void(std::size_t)>& gives = {});
/// The same check, in memory for one chunk; `each` gets the chunks that stand it, in order.
result<void> for_each_chunk(const storage_user& user, const std::string& dir, std::uint64_t step,
                            const shard_file& file,
                            const std::function<result<void>(std::span<const std::byte>)>& each);
/// What a shard's header says. Its checksums are not looked at, its size is.
result<image_contents> read_shard_header(const storage_user& user, const std::string& dir, std::uint64_t step,
                                         const shard_file& file);
/// The same check without use of the bytes.
result<void> check_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                         const shard_file& file);
/// Every file of a step, or of those ranks that `mine` says, against the manifest. The error names the file
/// that is damaged or missing.
result<step_summary> verify_step(const storage_user& user, const std::string& dir, std::uint64_t step,
                                 std::uint32_t world,
                                 const std::function<bool(std::uint32_t rank)>& mine = {});
/// Whether an error of what reads a step says that it was seen to be of no use; any other says that it could
/// not be looked at, or that we may not.
bool was_seen(const error& why);
/// The newest step all of whose files stand up to their checksums, below `below` where that is given; nothing
/// when there is none. `damaged` gets every newer one that is passed over, and why. For one that could not be
/// looked at no older one stands: that is the error. Reads what it vouches for.
result<std::optional<step_summary>> newest_whole_step(
    const storage_user& user, const std::string& dir, std::uint32_t world, std::optional<std::uint64_t> below,
    const std::function<void(std::uint64_t step, const error& why)>& damaged);

}  // namespace banyan::ckpt
