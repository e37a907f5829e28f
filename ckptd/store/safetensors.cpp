// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/safetensors.hpp"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/buffers/rank_memory.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t tensor_alignment = 64;
constexpr std::string_view pad_prefix = "__pad__/";

result<region> read_tensor(const std::string& name, const nlohmann::json& entry, std::uint64_t data_at,
                           std::uint64_t image_bytes) {
    const auto bad = [&](const char* what) {
        return fail(errc::invalid_input, fmt::format("tensor \"{}\": {}", name, what));
    };
    const json_fields in(entry, name);
    region r;
    r.name = name;
    BANYAN_TRY(r.dtype, in.text("dtype", 16));
    const auto element = dtype_bytes(r.dtype);
    if (element == 0) return bad("unknown dtype");
    BANYAN_TRY(r.shape, in.numbers<std::uint64_t>("shape", 16));
    BANYAN_TRY(const auto offsets, in.numbers<std::uint64_t>("data_offsets", 2));
    if (offsets.size() != 2) return bad("no usable data_offsets");
    const auto from = offsets[0], to = offsets[1];
    if (from > to || to > image_bytes - data_at) return bad("it reaches beyond the file");
    std::uint64_t elements = 1;
    for (const auto extent : r.shape)
        if (__builtin_mul_overflow(elements, extent, &elements)) return bad("its shape overflows");
    if (__builtin_mul_overflow(elements, element, &elements) || elements != to - from)
        return bad("shape and data_offsets disagree");
    r.bytes = to - from;
    r.offset = data_at + from;
    return r;
}

}  // namespace

std::size_t dtype_bytes(std::string_view dtype) {
    struct known {
        std::string_view name;
        std::size_t bytes;
    };
    static constexpr std::array<known, 15> all{{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I64", 8},
                                                {"I32", 4},
                                                {"I16", 2},
                                                {"I8", 1},
                                                {"U64", 8},
                                                {"U32", 4},
                                                {"U16", 2},
                                                {"U8", 1},
                                                {"BOOL", 1},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1}}};
    for (const auto& k : all)
        if (k.name == dtype) return k.bytes;
    return 0;
}

void put_step(char* where, std::uint64_t step) {
    for (std::size_t i = step_digits; i-- > 0; step /= 10) where[i] = static_cast<char>('0' + step % 10);
}

result<image_header> make_image_header(std::vector<region>& regions, std::uint64_t job, std::uint32_t rank,
                                       std::uint32_t world) {
    nlohmann::ordered_json head;
    head["__metadata__"] = {{"format", "banyan-ckpt 1"},
                            {"job", std::to_string(job)},
                            {"rank", std::to_string(rank)},
                            {"world", std::to_string(world)},
                            {"step", std::string(step_digits, '0')}};
    std::uint64_t at = 0;
    int pads = 0;
    for (auto& r : regions) {
        if (const auto gap = (tensor_alignment - at % tensor_alignment) % tensor_alignment; gap != 0) {
            const std::array<std::uint64_t, 2> offsets{at, at + gap};
            head[fmt::format("{}{}", pad_prefix, pads++)] = {
                {"dtype", "U8"}, {"shape", std::array{gap}}, {"data_offsets", offsets}};
            at += gap;
        }
        const std::array<std::uint64_t, 2> offsets{at, at + r.bytes};
        head[r.name] = {{"dtype", r.dtype}, {"shape", r.shape}, {"data_offsets", offsets}};
        r.offset = at;
        at += r.bytes;
    }
    image_header out;
    const auto json = head.dump();
    if (json.size() + 8 > max_header_bytes)
        return fail(errc::invalid_input,
                    fmt::format("{} regions are too many for one shard", regions.size()));
    const auto data_at = round_to_page(json.size() + 8);
    const std::uint64_t header_bytes = data_at - 8;
    out.text.resize(data_at, ' ');
    std::memcpy(out.text.data(), &header_bytes, 8);
    std::memcpy(out.text.data() + 8, json.data(), json.size());
    out.step_at = out.text.find("\"step\":\"") + 8;
    out.image_bytes = data_at + at;
    for (auto& r : regions) r.offset += data_at;
    return out;
}

result<image_contents> read_image(std::span<const std::byte> image) {
    std::uint64_t header_bytes = 0;
    if (image.size() < 16) return fail(errc::invalid_input, "the shard is shorter than its header");
    std::memcpy(&header_bytes, image.data(), 8);
    if (header_bytes > max_header_bytes || header_bytes > image.size() - 8)
        return fail(errc::invalid_input,
                    fmt::format("the shard's header of {} bytes does not fit", header_bytes));
    const std::string text(reinterpret_cast<const char*>(image.data()) + 8, header_bytes);
    BANYAN_TRY(const auto head, wire::decode_meta(std::as_bytes(std::span(text))));
    const auto meta = json_fields(head).object("__metadata__");
    if (!meta)
        return fail(errc::invalid_input, "the shard was not written by banyan: it has no __metadata__");
    image_contents out;
    const auto number = [&](const char* key, std::uint64_t max) -> result<std::uint64_t> {
        BANYAN_TRY(const auto digits, meta->text(key, 20));
        return parse_number(digits, max);
    };
    BANYAN_TRY(out.step, number("step", max_step));
    BANYAN_TRY(out.rank, number("rank", UINT32_MAX));
    BANYAN_TRY(out.world, number("world", UINT32_MAX));
    for (const auto& [name, entry] : head.items()) {
        if (name == "__metadata__") continue;
        BANYAN_TRY(auto r, read_tensor(name, entry, 8 + header_bytes, image.size()));
        if (!name.starts_with(pad_prefix)) out.regions.push_back(std::move(r));
    }
    return out;
}

}  // namespace banyan::ckpt
