// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric's snapshot. Its checksum keeps a mutated payload from being read at all, so it is put right
// here.
#include <banyan/topo/snapshot.hpp>

#include "common/crc32c.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan::topo;

namespace {

constexpr std::size_t head_bytes = 24;

std::string with_checksum(std::string_view text) {
    std::string bytes(text);
    if (bytes.size() < head_bytes) return bytes;
    const auto payload = std::string_view(bytes).substr(head_bytes);
    const std::uint32_t crc = banyan::crc32c(std::as_bytes(std::span(payload)));
    const std::uint64_t length = payload.size();
    std::memcpy(bytes.data() + 12, &crc, sizeof crc);
    std::memcpy(bytes.data() + 16, &length, sizeof length);
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = banyan::fuzz::as_text(data, size);
    (void)is_snapshot(text);
    (void)decode_snapshot(text);
    if (const auto f = decode_snapshot(with_checksum(text))) {
        (void)find_host(*f, "n01");
        banyan::fuzz::must(decode_snapshot(encode_snapshot(*f)).has_value());
    }
    return 0;
}
