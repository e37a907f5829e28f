// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of two ranks in a directory of their own, for the tests of storage.
#pragma once

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/buffers/memory.hpp"
#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/store.hpp"

namespace ckptd_test {

namespace ckpt = banyan::ckpt;

struct temporary {
    std::filesystem::path path;
    temporary() {
        std::string pattern = (std::filesystem::temp_directory_path() / "banyan-store-XXXXXX").string();
        path = ::mkdtemp(pattern.data());
    }
    ~temporary() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string dir() const { return (path / "ckpt").string(); }
};

inline ckpt::storage_user self() { return {::geteuid(), ::getegid(), {::getegid()}}; }

// The whole manifest, for those who want to look at it.
inline banyan::result<ckpt::manifest> load_step(const std::string& dir, std::uint64_t step,
                                                std::uint32_t world = 2) {
    ckpt::manifest m;
    const auto keep = [&](const ckpt::shard_file& f) { m.files.push_back(f); };
    BANYAN_TRY(const auto head, ckpt::scan_step(self(), dir, step, world, keep));
    m.job = head.job;
    m.step = head.step;
    m.generation = head.generation;
    m.world = head.world;
    return m;
}

inline std::vector<std::byte> make_image(std::uint64_t step, std::uint32_t rank,
                                         std::uint64_t large = 5'000'001) {
    std::vector<ckpt::region> regions{
        {"a", "F32", {3, 5}, 60, 0}, {"b \"quoted\"", "U8", {large}, large, 0}, {"c", "I64", {}, 8, 0}};
    auto head = ckpt::make_image_header(regions, 12, rank, 2);
    REQUIRE(head);
    ckpt::put_step(head->text.data() + head->step_at, step);
    std::vector<std::byte> image(head->image_bytes, std::byte{static_cast<unsigned char>(step + rank)});
    std::memcpy(image.data(), head->text.data(), head->text.size());
    return image;
}

/// The directory, taken from whoever has it.
inline ckpt::claim own(const std::string& dir, std::uint64_t job = 12, std::uint64_t generation = 1) {
    const auto seen = ckpt::read_owner(self(), dir);
    REQUIRE(seen);
    const auto c = ckpt::take_claim(self(), {dir, 0, job, generation, "n1", 1000, 0}, *seen);
    REQUIRE(c);
    return *c;
}

/// Both ranks' files in the flush's folder, and what the manifest will say.
inline ckpt::manifest write_files(const ckpt::claim& owner, const std::string& flush, std::uint64_t step,
                                  std::uint64_t large = 5'000'001) {
    ckpt::manifest m{owner.job, step, owner.generation, 2, {}};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        const auto image = make_image(step, rank, large);
        std::atomic<std::uint64_t> bytes{0};
        auto f = ckpt::write_shard(self(), owner.dir, flush, step, rank, image, ckpt::chunk_checksums(image),
                                   [&](std::uint64_t n) { bytes += n; });
        REQUIRE(f);
        CHECK(bytes == image.size());
        m.files.push_back(*f);
    }
    return m;
}

inline banyan::result<void> write_step(const ckpt::claim& owner, std::uint64_t step, std::size_t keep = 2,
                                       std::uint64_t large = 5'000'001, std::uint64_t milestone = 0) {
    BANYAN_TRY(const auto flush, ckpt::open_flush(self(), owner));
    BANYAN_CHECK(ckpt::commit_step(self(), owner, flush, write_files(owner, flush, step, large)));
    return ckpt::remove_older_steps(self(), owner, step, {keep, milestone});
}

inline banyan::result<void> try_write_step(const std::string& dir, std::uint64_t step, std::size_t keep = 2) {
    return write_step(own(dir), step, keep);
}

inline void write_step(const std::string& dir, std::uint64_t step, std::size_t keep = 2) {
    const auto done = try_write_step(dir, step, keep);
    if (!done) FAIL(done.error().text());
}

}  // namespace ckptd_test
