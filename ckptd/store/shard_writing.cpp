// SPDX-License-Identifier: BSD-3-Clause
//
// The large files of a step, written past the page cache where the file system can, checked chunk by chunk.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/store/big_file.hpp"
#include "ckptd/store/leftovers.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/crc32c.hpp"

namespace banyan::ckpt {

result<shard_file> write_shard(const storage_user& user, const std::string& dir, const std::string& flush,
                               std::uint64_t step, std::uint32_t rank, std::span<const std::byte> image,
                               const std::vector<std::uint32_t>& chunks,
                               const std::function<void(std::uint64_t)>& written, const std::string& writer) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    if (chunks.size() != chunk_count(image.size()))
        return fail(errc::internal, "a shard without its checksums");
    if (!is_flush_name(flush)) return fail(errc::invalid_input, "a flush's folder has another name");
    const auto shown = dir + "/" + flush;
    BANYAN_TRY(const auto top, open_directory(dir));
    BANYAN_TRY(const auto folder, open_folder(top.get(), flush, shown));
    const auto final_name = shard_name(rank);
    const auto name = "." + final_name + writer + ".tmp";
    const auto path = shown + "/" + name;
    BANYAN_TRY(auto file, big_file::create(folder.get(), name, image, modes_in(top.get()), path));
    const auto give_up = [&](error e) {
        ::unlinkat(folder.get(), name.c_str(), 0);
        return std::unexpected(std::move(e));
    };
    const auto unchanged = [&](std::size_t i, std::span<const std::byte> chunk) -> result<void> {
        if (crc32c(chunk) != chunks[i])
            return fail(errc::conflict,
                        fmt::format("rank {}'s shard of step {} changed in memory", rank, step));
        written(chunk.size());
        return {};
    };
    if (auto put = file.write(unchanged); !put) return give_up(put.error());
    shard_file out{rank, image.size(), 0, chunks};
    for (std::size_t i = 0; i < chunks.size(); ++i)
        out.crc32c =
            crc32c_combine(out.crc32c, chunks[i], std::min(chunk_bytes, image.size() - i * chunk_bytes));
    if (::renameat(folder.get(), name.c_str(), folder.get(), final_name.c_str()) != 0)
        return give_up(fail_errno(fmt::format("cannot rename {}", path), errno).error());
    BANYAN_CHECK(sync_folder(folder.get(), shown));
    return out;
}

}  // namespace banyan::ckpt
