// SPDX-License-Identifier: BSD-3-Clause
#include "common/wire.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "common/json_fields.hpp"

namespace banyan::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as the machine has them");
constexpr std::array<char, 4> magic{'B', 'N', 'Y', 'N'};
constexpr int max_depth = 16;

bool too_deep(std::string_view text) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > max_depth) return true;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return false;
}

}  // namespace

std::array<std::byte, header_bytes> encode_header(const header& h) {
    std::array<std::byte, header_bytes> out{};
    const std::uint16_t v = version;
    std::memcpy(out.data(), magic.data(), 4);
    std::memcpy(out.data() + 4, &v, 2);
    std::memcpy(out.data() + 6, &h.type, 2);
    std::memcpy(out.data() + 8, &h.meta_bytes, 4);
    std::memcpy(out.data() + 12, &h.body_bytes, 4);
    return out;
}

result<header> decode_header(std::span<const std::byte, header_bytes> bytes) {
    std::uint16_t v = 0;
    header h;
    if (std::memcmp(bytes.data(), magic.data(), 4) != 0)
        return fail(errc::invalid_input, "the peer does not speak banyan's protocol");
    std::memcpy(&v, bytes.data() + 4, 2);
    std::memcpy(&h.type, bytes.data() + 6, 2);
    std::memcpy(&h.meta_bytes, bytes.data() + 8, 4);
    std::memcpy(&h.body_bytes, bytes.data() + 12, 4);
    if (v != version)
        return fail(errc::invalid_input,
                    fmt::format("the peer speaks protocol version {}, expected {}", v, version),
                    "install the same banyan release on all nodes");
    if (h.meta_bytes > max_meta || h.body_bytes > max_body)
        return fail(errc::invalid_input, fmt::format("a frame of {} + {} bytes is over the limit of {} + {}",
                                                     h.meta_bytes, h.body_bytes, max_meta, max_body));
    return h;
}

result<nlohmann::json> decode_meta(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (too_deep(text)) return fail(errc::invalid_input, "metadata is nested too deep");
    auto meta = nlohmann::json::parse(text, nullptr, false);
    if (!meta.is_object()) return fail(errc::invalid_input, "metadata is not a JSON object");
    return meta;
}

nlohmann::json error_meta(const error& e) {
    return {{"error", e.what}, {"hint", e.hint}, {"code", static_cast<int>(e.code)}};
}

std::optional<error> error_from(const nlohmann::json& meta) {
    const json_fields in(meta);
    auto what = in.text("error");
    if (!what) return std::nullopt;
    const auto code = in.number("code", static_cast<int>(errc::internal));
    return error{code ? static_cast<errc>(*code) : errc::internal, std::move(*what),
                 in.text("hint").value_or("")};
}

}  // namespace banyan::wire
