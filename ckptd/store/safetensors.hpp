// SPDX-License-Identifier: BSD-3-Clause
//
// The image of one rank's shard, the same in a buffer, on the wire and in a file: plain safetensors. 8 bytes
// of header length, a JSON header padded with blanks so that data starts on a page, then the tensors, without
// holes, as the format wants it.
// The step stands in __metadata__ with a fixed width: a save patches it in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::ckpt {

constexpr std::size_t max_header_bytes = 100'000'000;  // what safetensors itself reads
constexpr std::size_t max_dimensions = 16;
constexpr std::size_t step_digits = 12;
constexpr std::uint64_t max_step = 999'999'999'999;

/// Which part of a tensor a region is: a number for each extent of the region, so none for a scalar.
struct tensor_part {
    std::vector<std::uint64_t> global_shape;  ///< of the tensor
    std::vector<std::uint64_t> begin;         ///< of the region in it
    bool operator==(const tensor_part&) const = default;
};

struct region {
    std::string name;
    std::string dtype;  ///< as safetensors writes it: F32, BF16, U8, ...
    std::vector<std::uint64_t> shape;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  ///< in the image
    /// Nothing: the region stands for itself. In __metadata__ as "pieces".
    std::optional<tensor_part> part{};
};

/// Whether `part` lies within its tensor and has the extents of `r`.
bool fits(const region& r, const tensor_part& part);

/// Bytes of one element, 0 for an unknown dtype.
std::size_t dtype_bytes(std::string_view dtype);

struct image_header {
    std::string text;         ///< the first bytes of the image, up to the data (a multiple of a page)
    std::size_t step_at = 0;  ///< where the step's digits stand in `text`
    std::uint64_t image_bytes = 0;
};

/// Lays out `regions` (fills in their offsets) and writes the header, which names them in their order.
result<image_header> make_image_header(std::vector<region>& regions, std::uint64_t job, std::uint32_t rank,
                                       std::uint32_t world);
/// Writes `step` as step_digits digits at `where`.
void put_step(char* where, std::uint64_t step);

struct image_contents {
    std::uint64_t step = 0;
    std::uint32_t rank = 0, world = 0;
    std::vector<region> regions;  ///< in the header's order
};

/// The length of the header's JSON, which begins at byte 8, from an image's first bytes.
result<std::uint64_t> header_bytes_of(std::span<const std::byte> start, std::uint64_t image_bytes);
/// The header's JSON alone, of an image of so many bytes.
result<image_contents> read_header(std::string_view json, std::uint64_t image_bytes);

/// Reads and checks an image's header: lengths, ranges, dtypes, every name once. Copies the header first, so
/// that memory which changes meanwhile does no harm.
result<image_contents> read_image(std::span<const std::byte> image);

}  // namespace banyan::ckpt
