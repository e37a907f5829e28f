// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints in storage, as the job's user:
//
//     DIR/step-000000000050/rank-000003.safetensors   one file per rank
//     DIR/step-000000000050/MANIFEST.json             after all of them
//     DIR/step-000000000050/COMMIT                    last: the manifest's CRC-32C
//     DIR/latest                                      name of the newest committed step's folder
//
// Every file comes by temporary name, fsync, rename, fsync of the folder. Presumed abort: a step without a
// COMMIT that fits its manifest does not exist. What is made is the user's alone unless the directory is one
// for sharing (user_dir.hpp). All calls block: from the daemon on its storage threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ckptd/store/as_user.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

struct shard_file {
    std::uint32_t rank = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
    std::vector<std::uint32_t> chunks;  ///< CRC-32C per 4 MiB
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

/// Writes one shard. `chunks` are the checksums computed when the shard was sealed: what is read from memory
/// now is compared with them, so that damage is never written. `written` is called with the bytes of each
/// piece.
result<shard_file> write_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                               std::uint32_t rank, std::span<const std::byte> image,
                               const std::vector<std::uint32_t>& chunks,
                               const std::function<void(std::uint64_t)>& written);

/// MANIFEST.json, COMMIT, latest; then removes committed steps but the newest `keep`.
result<void> commit_step(const storage_user& user, const std::string& dir, const manifest& m,
                         std::size_t keep);

/// Takes the COMMIT of an earlier life of this step away, before its files are written anew.
result<void> open_step(const storage_user& user, const std::string& dir, std::uint64_t step);

constexpr std::size_t max_listed_steps = 1024;
/// Steps that have a COMMIT, newest first, at most max_listed_steps. A missing directory has none.
result<std::vector<std::uint64_t>> list_steps(const storage_user& user, const std::string& dir);

/// Reads the manifest of a step as a stream, in memory for one file's entry, and checks it against its
/// COMMIT. `world`: a manifest of another number of ranks, or larger than that many could need, is refused; 0
/// = any. `each` gets every entry, in order of ranks, before the check is done: what it keeps counts only
/// when the whole succeeds.
result<step_summary> scan_step(const storage_user& user, const std::string& dir, std::uint64_t step,
                               std::uint32_t world, const std::function<void(const shard_file&)>& each = {});

/// Reads one shard into `into` (at least file.bytes) and checks size and checksums.
result<void> read_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                        const shard_file& file, std::span<std::byte> into);
/// The same check, in memory for one chunk.
result<void> check_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                         const shard_file& file);

}  // namespace banyan::ckpt
