// SPDX-License-Identifier: BSD-3-Clause
//
// A frame as a peer sends it: the header, and its metadata read as every receiver reads it.
#include "common/json_fields.hpp"
#include "common/wire.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < wire::header_bytes) return 0;
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto head = wire::decode_header(bytes.first<wire::header_bytes>());
    if (head) {
        must(head->meta_bytes <= wire::max_meta && head->body_bytes <= wire::max_body);
        must(std::ranges::equal(wire::encode_header(*head), bytes.first<wire::header_bytes>()));
    }
    const auto meta = wire::decode_meta(bytes.subspan(wire::header_bytes));
    if (!meta) return 0;
    must(meta->is_object());
    for (const auto& [key, value] : meta->items()) {
        if (const auto text = json_fields(*meta).text(key.c_str(), 64)) must(text->size() <= 64);
        if (const auto number = json_fields(*meta).number(key.c_str(), 1000)) must(*number <= 1000);
    }
    if (const auto e = wire::error_from(*meta)) must(wire::error_from(wire::error_meta(*e)).has_value());
    return 0;
}
