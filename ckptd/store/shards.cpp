// SPDX-License-Identifier: BSD-3-Clause
//
// The large files of a step, read and checked chunk by chunk.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/store/milestones.hpp"
#include "ckptd/store/step_source.hpp"
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

namespace {

class stored_step final : public step_source {
  public:
    explicit stored_step(std::string dir) : dir_(std::move(dir)) {}

    result<void> open(std::uint64_t step) {
        const auto keep = [&](const shard_file& file) { files_.push_back(file); };
        BANYAN_TRY(summary_, scan_step(myself(), dir_, step, 0, keep));
        return {};
    }
    std::uint64_t step() const override { return summary_.step; }
    std::uint32_t world() const override { return summary_.world; }
    saver saved_by() const override { return {summary_.job, summary_.generation}; }
    result<const shard_file*> shard(std::uint32_t rank) override { return &files_.at(rank); }
    result<void> read(const shard_file& of, std::size_t chunk, std::span<std::byte> into) override {
        auto known = std::ranges::find(open_, of.rank, &std::pair<std::uint32_t, unique_fd>::first);
        if (known == open_.end()) {
            BANYAN_TRY(auto fd, open_shard(dir_, step(), of));
            open_.emplace_front(of.rank, std::move(fd));
            if (open_.size() > most_open) open_.pop_back();
        } else {
            open_.splice(open_.begin(), open_, known);
        }
        return read_at(open_.front().second.get(), into, chunk * chunk_bytes, name_of(of.rank));
    }
    std::string name_of(std::uint32_t rank) const override {
        return step_folder(dir_, step()) + "/" + shard_name(rank);
    }

  private:
    static constexpr std::size_t most_open = 8;
    std::string dir_;
    step_summary summary_;
    std::vector<shard_file> files_;
    std::list<std::pair<std::uint32_t, unique_fd>> open_;  ///< the last ones used, the newest first
};

}  // namespace

result<std::unique_ptr<step_source>> open_stored_step(const std::string& dir,
                                                      std::optional<std::uint64_t> step) {
    if (const auto named = milestone_of(dir); named && !step) {
        BANYAN_TRY(const auto is, find_milestone(myself(), *named));
        return open_stored_step(named->dir, is);
    }
    if (!step) {
        BANYAN_TRY(const auto steps, list_steps(myself(), dir));
        if (steps.empty()) return fail(errc::not_found, fmt::format("there is no step in {}", dir));
        step = steps.front();
    }
    auto out = std::make_unique<stored_step>(dir);
    BANYAN_CHECK(out->open(*step));
    return out;
}

}  // namespace banyan::ckpt
