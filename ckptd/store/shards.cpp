// SPDX-License-Identifier: BSD-3-Clause
//
// The large files of a step, read and checked chunk by chunk.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/store/step_reader.hpp"
#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/user_dir.hpp"
#include "common/crc32c.hpp"

namespace banyan::ckpt {
namespace {

result<unique_fd> open_shard(const std::string& dir, std::uint64_t step, const shard_file& file) {
    const auto shown = step_folder(dir, step);
    const auto name = shard_name(file.rank);
    BANYAN_TRY(const auto top, open_for_reading(dir));
    BANYAN_TRY(const auto folder, open_step_folder(top.get(), dir, step));
    std::uint64_t bytes = 0;
    BANYAN_TRY(auto fd, open_regular(folder.get(), name, shown + "/" + name, &bytes));
    if (bytes != file.bytes || file.chunks.size() != chunk_count(file.bytes))
        return fail(errc::invalid_input,
                    fmt::format("{}/{} has {} bytes, its manifest says {}", shown, name, bytes, file.bytes),
                    "the step is damaged");
    return fd;
}

result<void> read_at(int fd, std::span<std::byte> into, std::uint64_t at, const std::string& path) {
    for (std::size_t have = 0; have < into.size();) {
        const auto got = ::pread(fd, into.data() + have, into.size() - have, static_cast<off_t>(at + have));
        if (got < 0 && errno == EINTR) continue;
        const int why = got < 0 ? errno : EIO;
        if (got == 0 || (got < 0 && is_damage(why)))  // 0: it was cut since it was opened
            return fail(errc::invalid_input,
                        fail_errno(fmt::format("cannot read {}", path), why).error().what,
                        "the step is damaged");
        if (got < 0) return fail_errno(fmt::format("cannot read {}", path), why);
        have += static_cast<std::size_t>(got);
    }
    return {};
}

result<void> read_chunk(int fd, std::span<std::byte> chunk, std::size_t index, std::uint32_t crc,
                        const std::string& path) {
    BANYAN_CHECK(read_at(fd, chunk, index * chunk_bytes, path));
    if (crc32c(chunk) == crc) return {};
    return fail(errc::invalid_input,
                fmt::format("{} is damaged: checksum of its chunk {} differs", path, index),
                "the step is damaged");
}

}  // namespace

result<void> read_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                        const shard_file& file, std::span<std::byte> into,
                        const std::function<void(std::size_t)>& gives) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto path = step_folder(dir, step) + "/" + shard_name(file.rank);
    if (into.size() < file.bytes)
        return fail(errc::exhausted, fmt::format("{} does not fit its buffer", path));
    BANYAN_TRY(const auto fd, open_shard(dir, step, file));
    const auto image = into.first(file.bytes);
    for (std::size_t i = 0; i < file.chunks.size(); ++i) {
        BANYAN_CHECK(read_chunk(fd.get(), chunk_of(image, i), i, file.chunks[i], path));
        if (gives) gives(i);
    }
    return {};
}

result<void> for_each_chunk(const storage_user& user, const std::string& dir, std::uint64_t step,
                            const shard_file& file,
                            const std::function<result<void>(std::span<const std::byte>)>& each) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto path = step_folder(dir, step) + "/" + shard_name(file.rank);
    BANYAN_TRY(const auto fd, open_shard(dir, step, file));
    std::vector<std::byte> buffer(std::min<std::uint64_t>(file.bytes, chunk_bytes));
    for (std::size_t i = 0; i < file.chunks.size(); ++i) {
        const auto n = std::min<std::uint64_t>(chunk_bytes, file.bytes - i * chunk_bytes);
        BANYAN_CHECK(read_chunk(fd.get(), std::span(buffer).first(n), i, file.chunks[i], path));
        BANYAN_CHECK(each(std::span(buffer).first(n)));
    }
    return {};
}

result<void> check_shard(const storage_user& user, const std::string& dir, std::uint64_t step,
                         const shard_file& file) {
    return for_each_chunk(user, dir, step, file, [](std::span<const std::byte>) { return result<void>{}; });
}

result<shard_reader> shard_reader::open(const std::string& dir, std::uint64_t step, const shard_file& file) {
    shard_reader out;
    out.path_ = step_folder(dir, step) + "/" + shard_name(file.rank);
    out.file_ = file;
    BANYAN_TRY(out.fd_, open_shard(dir, step, file));
    return out;
}

result<void> shard_reader::load(std::size_t chunk, std::span<std::byte> into) {
    return read_chunk(fd_.get(), into, chunk, file_.chunks[chunk], path_);
}

// A chunk that is wanted whole comes to its place at once.
result<void> shard_reader::read(std::uint64_t at, std::span<std::byte> into) {
    if (at > file_.bytes || into.size() > file_.bytes - at)
        return fail(errc::invalid_input, fmt::format("{} ends before byte {}", path_, at + into.size()));
    while (!into.empty()) {
        const std::size_t chunk = at / chunk_bytes, inside = at % chunk_bytes;
        const auto bytes = std::min<std::uint64_t>(chunk_bytes, file_.bytes - chunk * chunk_bytes);
        const auto some = std::min<std::uint64_t>(bytes - inside, into.size());
        if (some == bytes) {
            BANYAN_CHECK(load(chunk, into.first(some)));
        } else {
            if (kept_chunk_ != chunk) {
                kept_chunk_.reset();
                kept_.resize(bytes);
                BANYAN_CHECK(load(chunk, kept_));
                kept_chunk_ = chunk;
            }
            std::memcpy(into.data(), kept_.data() + inside, some);
        }
        at += some;
        into = into.subspan(some);
    }
    return {};
}

result<image_contents> read_shard_header(const storage_user& user, const std::string& dir, std::uint64_t step,
                                         const shard_file& file) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto path = step_folder(dir, step) + "/" + shard_name(file.rank);
    const auto damaged = [&](const error& e) {
        return fail(e.code, fmt::format("{}: {}", path, e.what), "the step is damaged");
    };
    BANYAN_TRY(const auto fd, open_shard(dir, step, file));
    std::array<std::byte, 8> start{};
    if (file.bytes < start.size()) return damaged({errc::invalid_input, "it is too short", ""});
    BANYAN_CHECK(read_at(fd.get(), start, 0, path));
    const auto bytes = header_bytes_of(start, file.bytes);
    if (!bytes) return damaged(bytes.error());
    std::string json(*bytes, '\0');
    BANYAN_CHECK(read_at(fd.get(), std::as_writable_bytes(std::span(json)), start.size(), path));
    auto contents = read_header(json, file.bytes);
    if (!contents) return damaged(contents.error());
    if (contents->step != step || contents->rank != file.rank)
        return damaged({errc::invalid_input,
                        fmt::format("it is of step {}, rank {}", contents->step, contents->rank), ""});
    return contents;
}

}  // namespace banyan::ckpt
