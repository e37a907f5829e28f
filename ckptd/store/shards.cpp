// SPDX-License-Identifier: BSD-3-Clause
//
// The large files of a step: written past the page cache where the file system can, checked chunk by chunk.
#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/slots/memory.hpp"
#include "ckptd/store/store.hpp"
#include "common/crc32c.hpp"
#include "common/file.hpp"

namespace banyan::ckpt {
namespace {

struct new_file {
    unique_fd fd;
    bool direct = false;
};

result<new_file> create(const std::string& path, bool aligned) {
    ::unlink(path.c_str());  // what a killed predecessor left
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    new_file out;
    // Direct writes want the memory on a page; a slot is, another caller's buffer may not be.
    if (aligned) out.fd.reset(::open(path.c_str(), flags | O_DIRECT, 0666));
    out.direct = static_cast<bool>(out.fd);
    if (!out.fd && (!aligned || errno == EINVAL)) {
        ::unlink(path.c_str());  // some file systems create the file before they refuse the flag
        out.fd.reset(::open(path.c_str(), flags, 0666));
    }
    if (!out.fd) return fail_errno(fmt::format("cannot create {}", path), errno);
    return out;
}

result<void> write_chunk(new_file& file, std::span<const std::byte> chunk, off_t at,
                         const std::string& path) {
    if (file.direct && chunk.size() % page_bytes != 0) {
        // The ragged end goes through the page cache; the fsync that follows covers it.
        if (::fcntl(file.fd.get(), F_SETFL, 0) != 0)
            return fail_errno(fmt::format("cannot write {}", path), errno);
        file.direct = false;
    }
    return write_all(file.fd.get(), chunk, at, path);
}

}  // namespace

result<shard_file> write_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                               std::uint32_t rank, std::span<const std::byte> image,
                               const std::vector<std::uint32_t>& chunks,
                               const std::function<void(std::uint64_t)>& written) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    if (chunks.size() != chunk_count(image.size()))
        return fail(errc::internal, "a shard without its checksums");
    const auto folder = step_folder(dir, step);
    const auto final_path = folder + "/" + shard_name(rank);
    const auto path = folder + "/." + shard_name(rank) + ".tmp";
    BANYAN_TRY(auto file, create(path, reinterpret_cast<std::uintptr_t>(image.data()) % page_bytes == 0));
    const auto give_up = [&](error e) {
        ::unlink(path.c_str());
        return std::unexpected(std::move(e));
    };
    shard_file out{rank, image.size(), 0, chunks};
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        const auto at = i * chunk_bytes;
        const auto chunk = image.subspan(at, std::min(chunk_bytes, image.size() - at));
        if (crc32c(chunk) != chunks[i])
            return give_up({errc::conflict,
                            fmt::format("rank {}'s shard of step {} changed in memory", rank, step), ""});
        out.crc32c = crc32c(chunk, out.crc32c);
        if (auto put = write_chunk(file, chunk, static_cast<off_t>(at), path); !put)
            return give_up(put.error());
        written(chunk.size());
    }
    if (::fsync(file.fd.get()) != 0)
        return give_up(fail_errno(fmt::format("cannot sync {}", path), errno).error());
    if (::rename(path.c_str(), final_path.c_str()) != 0)
        return give_up(fail_errno(fmt::format("cannot rename {}", path), errno).error());
    BANYAN_CHECK(sync_directory(folder));
    return out;
}

result<void> read_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                        const shard_file& file, std::span<std::byte> into) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto path = step_folder(dir, step) + "/" + shard_name(file.rank);
    if (into.size() < file.bytes) return fail(errc::exhausted, fmt::format("{} does not fit its slot", path));
    // O_NONBLOCK: a FIFO in a file's place must not hold a worker.
    unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return fail_errno(fmt::format("cannot open {}", path), errno);
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) ||
        static_cast<std::uint64_t>(st.st_size) != file.bytes)
        return fail(errc::invalid_input,
                    fmt::format("{} has {} bytes, its manifest says {}", path, st.st_size, file.bytes),
                    "the step is damaged");
    const auto image = into.first(file.bytes);
    for (std::size_t i = 0; i < file.chunks.size(); ++i) {
        const auto chunk = chunk_of(image, i);
        for (std::size_t have = 0; have < chunk.size();) {
            const auto got = ::pread(fd.get(), chunk.data() + have, chunk.size() - have,
                                     static_cast<off_t>(i * chunk_bytes + have));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return fail_errno(fmt::format("cannot read {}", path), got < 0 ? errno : EIO);
            have += static_cast<std::size_t>(got);
        }
        if (crc32c(chunk) != file.chunks[i])
            return fail(errc::invalid_input,
                        fmt::format("{} is damaged: checksum of its chunk {} differs", path, i),
                        "the step is damaged");
    }
    return {};
}

}  // namespace banyan::ckpt
