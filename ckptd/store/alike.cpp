// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/alike.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/crc32c.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::uint64_t most_packed = 64u << 20;

// As it was when it was sealed: what is said of it stands for what is written.
result<void> is_unchanged(std::span<const std::byte> image, const std::vector<std::uint32_t>& chunks,
                          std::uint64_t from, std::uint64_t bytes, std::set<std::size_t>& looked_at) {
    if (bytes == 0) return {};
    for (auto i = from / chunk_bytes; i <= (from + bytes - 1) / chunk_bytes; ++i) {
        if (!looked_at.insert(i).second) continue;
        const auto at = i * chunk_bytes;
        const auto chunk = image.subspan(at, std::min<std::uint64_t>(chunk_bytes, image.size() - at));
        if (i >= chunks.size() || crc32c(chunk) != chunks[i])
            return fail(errc::conflict, fmt::format("chunk {} of the shard changed in memory", i));
    }
    return {};
}

}  // namespace

result<std::string> digest_of_pieces(std::span<const std::byte> image) {
    BANYAN_TRY(const auto has, read_image(image));
    std::vector<std::string> pieces;
    for (const auto& r : has.regions)
        if (r.part)
            // The name's length first: a name may hold anything.
            pieces.push_back(fmt::format("{} {} {} {} {} {}\n", r.name.size(), r.name, r.dtype,
                                         fmt::join(r.shape, ","), fmt::join(r.part->global_shape, ","),
                                         fmt::join(r.part->begin, ",")));
    if (pieces.empty()) return std::string();
    std::ranges::sort(pieces);
    const auto all = fmt::format("{}", fmt::join(pieces, ""));
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned bytes = 0;
    if (EVP_Digest(all.data(), all.size(), sum.data(), &bytes, EVP_sha256(), nullptr) != 1)
        return fail(errc::internal, "no SHA-256");
    return fmt::format("{:02x}", fmt::join(std::span(sum).first(16), ""));
}

result<packed_shard> without_pieces(std::span<const std::byte> image,
                                    const std::vector<std::uint32_t>& chunks, std::uint64_t job) {
    BANYAN_TRY(const auto start, header_bytes_of(image, image.size()));
    std::set<std::size_t> looked_at;
    BANYAN_CHECK(is_unchanged(image, chunks, 0, 8 + start, looked_at));
    BANYAN_TRY(const auto has, read_image(image));
    std::vector<region> rest;
    for (const auto& r : has.regions)
        if (!r.part) rest.push_back(r);
    const auto from = rest;
    BANYAN_TRY(auto head, make_image_header(rest, job, has.rank, has.world));
    put_step(head.text.data() + head.step_at, has.step);
    // Regions may share bytes in a header that its rank has spoilt since: their sum says nothing of the
    // shard's.
    if (head.image_bytes > std::min<std::uint64_t>(image.size() / 2, most_packed))
        return fail(errc::exhausted, "too little of the shard is parts of tensors");
    packed_shard out;
    // On a page, so that it is written past the page cache.
    out.memory = {static_cast<std::byte*>(
                      std::aligned_alloc(least_page_bytes, round_up(head.image_bytes, least_page_bytes))),
                  &std::free};
    if (!out.memory) return fail(errc::exhausted, "no memory for a shard without its parts of tensors");
    const std::span to(out.memory.get(), head.image_bytes);
    std::memcpy(to.data(), head.text.data(), head.text.size());
    for (std::size_t i = 0; i < rest.size(); ++i) {
        BANYAN_CHECK(is_unchanged(image, chunks, from[i].offset, from[i].bytes, looked_at));
        if (rest[i].bytes != 0)
            std::memcpy(to.data() + rest[i].offset, image.data() + from[i].offset, rest[i].bytes);
    }
    for (std::size_t i = 0; i < chunk_count(to.size()); ++i) out.chunks.push_back(crc32c(chunk_of(to, i)));
    out.image = to;
    return out;
}

}  // namespace banyan::ckpt
