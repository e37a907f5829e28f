// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a shard's image. The length in front of it is put right in a second try, so that mutations
// reach the JSON.
#include "ckptd/store/safetensors.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;

namespace {

void read(std::span<const std::byte> image) {
    const auto found = ckpt::read_image(image);
    if (!found) return;
    must(found->step <= ckpt::max_step);
    for (const auto& r : found->regions)
        must(r.offset <= image.size() && r.bytes <= image.size() - r.offset &&
             ckpt::dtype_bytes(r.dtype) != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    read(std::as_bytes(std::span(data, size)));
    fuzz::input in(data, size);
    const auto header = in.text();
    std::string image(8, '\0');
    const std::uint64_t bytes = header.size();
    std::memcpy(image.data(), &bytes, sizeof bytes);
    image += header;
    image += in.rest();
    read(std::as_bytes(std::span(image)));
    return 0;
}
