// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/store/header_entries.hpp"
#include "common/stream_line.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

// As JSON has it. Most names are plain.
std::string json_text(const std::string& text) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (!std::all_of(text.begin(), text.end(), plain)) return nlohmann::json(text).dump();
    std::string out;
    out.reserve(text.size() + 2);
    return out.append(1, '"').append(text).append(1, '"');
}

constexpr std::string_view pieces_key = "pieces";

result<region> read_tensor(const header_entry& in, std::uint64_t data_at, std::uint64_t image_bytes) {
    const auto bad = [&](const char* what) {
        return fail(errc::invalid_input, fmt::format("tensor \"{}\": {}", in.name, what));
    };
    const auto* dtype = in.text("dtype");
    const auto* shape = in.list("shape");
    const auto* offsets = in.list("data_offsets");
    const auto element = dtype ? dtype_bytes(*dtype) : 0;
    if (element == 0) return bad("unknown dtype");
    if (!shape) return bad("no shape");
    if (!offsets || offsets->size() != 2) return bad("no usable data_offsets");
    const auto from = offsets->front(), to = offsets->back();
    if (from > to || to > image_bytes - data_at) return bad("it reaches beyond the file");
    std::uint64_t elements = 1;
    for (const auto extent : *shape)
        if (__builtin_mul_overflow(elements, extent, &elements)) return bad("its shape overflows");
    if (__builtin_mul_overflow(elements, element, &elements) || elements != to - from)
        return bad("shape and data_offsets disagree");
    return region{in.name, *dtype, *shape, to - from, data_at + from};
}

result<void> read_metadata(const header_entry& in, image_contents& out, std::string& pieces) {
    const auto number = [&](const char* key, std::uint64_t max) -> result<std::uint64_t> {
        const auto* digits = in.text(key);
        if (!digits)
            return fail(errc::invalid_input,
                        fmt::format("the shard was not written by banyan: its __metadata__ has no {}", key));
        return parse_number(std::string_view(*digits).substr(0, 21), max);
    };
    BANYAN_TRY(out.step, number("step", max_step));
    BANYAN_TRY(const auto rank, number("rank", UINT32_MAX));
    BANYAN_TRY(const auto world, number("world", UINT32_MAX));
    out.rank = static_cast<std::uint32_t>(rank);
    out.world = static_cast<std::uint32_t>(world);
    if (const auto* text = in.text(pieces_key)) pieces = *text;
    return {};
}

result<void> names_differ(const std::vector<region>& regions) {
    std::unordered_set<std::string_view> seen;
    seen.reserve(regions.size());
    for (const auto& r : regions)
        if (!seen.insert(r.name).second)
            return fail(errc::invalid_input, fmt::format("tensor \"{}\" is there twice", r.name));
    return {};
}

// A JSON text within the JSON text: __metadata__ holds texts alone.
std::string pieces_of(const std::vector<region>& regions) {
    std::string json;
    for (const auto& r : regions)
        if (r.part)
            fmt::format_to(std::back_inserter(json), "{}{}:{{\"global_shape\":[{}],\"offset\":[{}]}}",
                           json.empty() ? "{" : ",", json_text(r.name), fmt::join(r.part->global_shape, ","),
                           fmt::join(r.part->begin, ","));
    return json.empty() ? json : nlohmann::json(json + "}").dump();
}

result<void> read_pieces(const std::string& json, std::vector<region>& regions) {
    std::unordered_map<std::string_view, region*> named;
    for (auto& r : regions) named.emplace(r.name, &r);
    const auto take = [&](header_entry& in) -> result<void> {
        const auto wrong = fail(errc::invalid_input, fmt::format("\"{}\" is no piece of a tensor", in.name));
        const auto it = named.find(in.name);
        const auto *global = in.list("global_shape"), *begin = in.list("offset");
        if (it == named.end() || !global || !begin) return wrong;
        it->second->part = {*global, *begin};
        return fits(*it->second, *it->second->part) ? result<void>{} : wrong;
    };
    return read_entries(json, take);
}

// The format allows no holes. So whatever would leave one comes last, the largest elements first: each tensor
// lies on a multiple of its element's size, and of a cache line where its own size is one. Returns their sum.
result<std::uint64_t> lay_out(std::vector<region>& regions) {
    const auto alignment = [](const region* r) {
        return r->bytes % cache_line == 0 ? cache_line : dtype_bytes(r->dtype);
    };
    std::vector<region*> order;
    order.reserve(regions.size());
    for (auto& r : regions) order.push_back(&r);
    std::ranges::stable_sort(order, std::greater(), alignment);
    std::uint64_t at = 0;
    for (auto* r : order) {
        r->offset = at;
        if (__builtin_add_overflow(at, r->bytes, &at))
            return fail(errc::invalid_input, "the sizes of the regions overflow");
    }
    return at;
}

void put_entry(std::string& json, const region& r) {
    fmt::format_to(std::back_inserter(json),
                   ",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_text(r.name),
                   r.dtype, fmt::join(r.shape, ","), r.offset, r.offset + r.bytes);
}

}  // namespace

bool fits(const region& r, const tensor_part& part) {
    const auto& [whole, begin] = part;
    if (whole.size() != r.shape.size() || begin.size() != r.shape.size()) return false;
    std::uint64_t all = dtype_bytes(r.dtype);
    for (std::size_t i = 0; i < r.shape.size(); ++i) {
        if (begin[i] > whole[i] || r.shape[i] > whole[i] - begin[i]) return false;
        if (__builtin_mul_overflow(all, whole[i], &all)) return false;
    }
    return true;
}

std::size_t dtype_bytes(std::string_view dtype) {
    struct known {
        std::string_view name;
        std::size_t bytes;
    };
    static constexpr std::array<known, 19> all{{{"F64", 8},
                                                {"C64", 8},
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
                                                {"F8_E5M2", 1},
                                                {"F8_E8M0", 1},
                                                {"F8_E4M3FNUZ", 1},
                                                {"F8_E5M2FNUZ", 1}}};
    for (const auto& k : all)
        if (k.name == dtype) return k.bytes;
    return 0;
}

void put_step(char* where, std::uint64_t step) {
    for (std::size_t i = step_digits; i-- > 0; step /= 10) where[i] = static_cast<char>('0' + step % 10);
}

// Written by hand: a JSON object that keeps its order looks every name up in all that it has.
result<image_header> make_image_header(std::vector<region>& regions, std::uint64_t job, std::uint32_t rank,
                                       std::uint32_t world) {
    image_header out;
    auto json = fmt::format(
        "{{\"__metadata__\":{{\"format\":\"banyan-ckpt "
        "1\",\"job\":\"{}\",\"rank\":\"{}\",\"world\":\"{}\",\"step\":\"",
        job, rank, world);
    out.step_at = 8 + json.size();
    json.append(step_digits, '0');
    json += '"';
    if (const auto pieces = pieces_of(regions); !pieces.empty())
        fmt::format_to(std::back_inserter(json), ",\"{}\":{}", pieces_key, pieces);
    json += '}';
    BANYAN_TRY(const auto bytes, lay_out(regions));
    for (const auto& r : regions) {
        put_entry(json, r);
        if (json.size() > max_header_bytes - least_page_bytes)
            return fail(errc::invalid_input,
                        fmt::format("{} regions are too many for one shard: what is said of them, with their "
                                    "names, is more than {}",
                                    regions.size(), format_bytes(max_header_bytes)),
                        "join small regions, or give them shorter names");
    }
    json += '}';
    const auto data_at = round_up(json.size() + 8, least_page_bytes);
    const std::uint64_t header_bytes = data_at - 8;
    out.text.resize(data_at, ' ');
    std::memcpy(out.text.data(), &header_bytes, 8);
    std::memcpy(out.text.data() + 8, json.data(), json.size());
    if (__builtin_add_overflow(data_at, bytes, &out.image_bytes))
        return fail(errc::invalid_input, "the sizes of the regions overflow");
    for (auto& r : regions) r.offset += data_at;
    return out;
}

result<std::uint64_t> header_bytes_of(std::span<const std::byte> start, std::uint64_t image_bytes) {
    std::uint64_t bytes = 0;
    if (start.size() < 8 || image_bytes < 16)
        return fail(errc::invalid_input, "the shard is shorter than its header");
    std::memcpy(&bytes, start.data(), 8);
    if (bytes > max_header_bytes || bytes > image_bytes - 8)
        return fail(errc::invalid_input, fmt::format("the shard's header of {} bytes does not fit", bytes));
    return bytes;
}

result<image_contents> read_header(std::string_view json, std::uint64_t image_bytes) {
    if (image_bytes < 8 + json.size())
        return fail(errc::invalid_input, "the shard is shorter than its header");
    image_contents out;
    std::string pieces;
    bool ours = false;
    const auto take = [&](header_entry& entry) -> result<void> {
        if (entry.name == "__metadata__") {
            if (std::exchange(ours, true)) return fail(errc::invalid_input, "__metadata__ is there twice");
            return read_metadata(entry, out, pieces);
        }
        BANYAN_TRY(auto r, read_tensor(entry, 8 + json.size(), image_bytes));
        out.regions.push_back(std::move(r));
        return {};
    };
    BANYAN_CHECK(read_entries(json, take));
    if (!ours)
        return fail(errc::invalid_input, "the shard was not written by banyan: it has no __metadata__");
    BANYAN_CHECK(names_differ(out.regions));
    if (!pieces.empty()) BANYAN_CHECK(read_pieces(pieces, out.regions));
    return out;
}

result<image_contents> read_image(std::span<const std::byte> image) {
    BANYAN_TRY(const auto bytes, header_bytes_of(image, image.size()));
    const std::string text(reinterpret_cast<const char*>(image.data()) + 8, bytes);
    return read_header(text, image.size());
}

}  // namespace banyan::ckpt
