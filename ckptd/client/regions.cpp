// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/regions.hpp"

#include <algorithm>
#include <cstring>
#include <expected>
#include <string_view>

#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/client/device.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t max_regions = 1'000'000;
constexpr std::size_t max_name = 512;

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto c = first_character(text);
        if (!c.valid) return false;
        text.remove_prefix(c.bytes);
    }
    return true;
}

outcome bad(std::string what) { return {BCK_E_INVALID, std::move(what)}; }

outcome check_name(const char* name) {
    if (!name || !*name || ::strnlen(name, max_name + 1) > max_name || std::strncmp(name, "__", 2) == 0)
        return bad(
            fmt::format("a region's name has 1 to 512 bytes and does not begin with \"__\": \"{}\"",
                        printable(std::string_view(name ? name : "", name ? ::strnlen(name, 40) : 0))));
    // It becomes JSON, which has no other text.
    if (!is_utf8(name)) return bad(fmt::format("the region's name \"{}\" is not UTF-8", printable(name)));
    return {};
}

bool same_layout(const region& a, const region& b) {
    return a.bytes == b.bytes && a.dtype == b.dtype && a.shape == b.shape;
}

bool same_text(const std::string& a, const char* b) {
    return b && std::strncmp(a.c_str(), b, a.size() + 1) == 0;
}

bool is_described(const region& r, const bck_tensor& d) {
    if (d.ndim < 0 || r.shape.size() != static_cast<std::size_t>(d.ndim)) return false;
    if (!d.global_shape != !d.offset || (!d.ptr && d.bytes != 0)) return false;
    if ((d.ndim > 0 && !d.shape) || !d.global_shape != !r.part) return false;
    const auto same = [](const std::vector<std::uint64_t>& a, const std::uint64_t* b) {
        return std::equal(a.begin(), a.end(), b);
    };
    return r.bytes == d.bytes && same_text(r.name, d.name) && same_text(r.dtype, d.dtype) &&
           same(r.shape, d.shape) &&
           (!r.part || (same(r.part->global_shape, d.global_shape) && same(r.part->begin, d.offset)));
}

std::expected<region, std::string> region_of(const bck_tensor& described) {
    const auto [name, ptr, bytes, dtype, ndim, shape, global_shape, begin] = described;
    const auto wrong = [](std::string why) { return std::unexpected(std::move(why)); };
    if (!dtype || dtype_bytes(dtype) == 0)
        return wrong(fmt::format(
            "unknown dtype \"{}\"; known are F64 F32 F16 BF16 C64 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ "
            "F8_E5M2FNUZ I64 I32 I16 I8 U64 U32 U16 U8 BOOL",
            printable(std::string_view(dtype ? dtype : "").substr(0, 40))));
    if (ndim < 0 || ndim > static_cast<int>(max_dimensions))
        return wrong(fmt::format("ndim is {}, expected 0 to {}", ndim, max_dimensions));
    if (ndim > 0 && !shape) return wrong("shape is NULL");
    if (!ptr && bytes != 0) return wrong(fmt::format("ptr is NULL, for {} bytes", bytes));
    region r{name, dtype, std::vector<std::uint64_t>(shape, shape + ndim), bytes, 0};
    std::uint64_t size = dtype_bytes(dtype);
    for (const auto extent : r.shape)
        if (__builtin_mul_overflow(size, extent, &size)) return wrong("the shape overflows");
    if (size != bytes)
        return wrong(fmt::format("it has {} bytes, but its shape and dtype say {}", bytes, size));
    if (!global_shape != !begin) return wrong("of global_shape and offset one is NULL");
    if (global_shape) {
        r.part = {{global_shape, global_shape + ndim}, {begin, begin + ndim}};
        if (!fits(r, *r.part)) return wrong("it does not lie within its global shape, or that overflows");
    }
    return r;
}

/// Whether a copy can read there, by which way. Where the region lay before was looked at then.
outcome look_at(place* at, std::uint64_t bytes, const void* before = nullptr) {
    if (bytes == 0) return {};
    at->on_device = device::owns(at->ptr);
    if (at->on_device || at->ptr == before || device::is_mapped(at->ptr, bytes)) return {};
    return {BCK_E_DEVICE, fmt::format("this process has no memory at {}{}", at->ptr,
                                      device::has_driver() ? "" : ", and no CUDA driver: is it a GPU's?")};
}

}  // namespace

outcome region_table::add(const bck_tensor& described) {
    const auto* name = described.name;
    if (auto named = check_name(name); named.code != 0) return named;
    auto made = region_of(described);
    if (!made) return bad(fmt::format("region \"{}\": {}", printable(name), made.error()));
    auto& r = *made;
    place where{described.ptr, false};
    if (auto found = look_at(&where, r.bytes); found.code != 0)
        return {found.code, fmt::format("region \"{}\": {}", printable(name), found.text)};
    if (const auto known = by_name_.find(r.name); known != by_name_.end()) {
        const auto i = known->second;
        if (!same_layout(regions_[i], r) || regions_[i].part != r.part) changed_ = true;
        r.offset = regions_[i].offset;
        regions_[i] = std::move(r);
        move(i, where);
        return {};
    }
    if (by_name_.size() >= max_regions) return bad(fmt::format("more than {} regions", max_regions));
    if (regions_.size() >= 2 * max_regions) close_gaps();
    by_name_.emplace(r.name, regions_.size());
    regions_.push_back(std::move(r));
    places_.emplace_back();
    move(places_.size() - 1, where);
    changed_ = true;
    return {};
}

outcome region_table::withdraw(const char* name) {
    if (auto named = check_name(name); named.code != 0) return named;
    const auto known = by_name_.find(std::string_view(name));
    if (known == by_name_.end()) return bad(fmt::format("no region \"{}\" is protected", printable(name)));
    regions_[known->second] = {};
    move(known->second, {});
    by_name_.erase(known);
    changed_ = true;
    return {};
}

// All gaps at once: one at a time would move what follows each time.
void region_table::close_gaps() {
    if (by_name_.size() == regions_.size()) return;
    std::size_t to = 0;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        if (regions_[i].name.empty()) continue;
        by_name_[regions_[i].name] = to;
        places_[to] = places_[i];
        if (to != i) regions_[to] = std::move(regions_[i]);
        ++to;
    }
    regions_.resize(to);
    places_.resize(to);
}

void region_table::move(std::size_t i, const place& to) {
    const bool was_the_one = places_[i].on_device && places_[i].ptr == on_device_;
    places_[i] = to;
    if (to.on_device && (was_the_one || !on_device_)) {
        on_device_ = to.ptr;
    } else if (was_the_one) {
        const auto it =
            std::find_if(places_.begin(), places_.end(), [](const auto& p) { return p.on_device; });
        on_device_ = it == places_.end() ? nullptr : it->ptr;
    }
}

result<void> region_table::make_header(std::uint64_t job, std::uint32_t rank, std::uint32_t world) {
    const saver by{job, rank, world};
    if (!changed_ && made_for_ == by) return {};
    close_gaps();
    BANYAN_TRY(header_, make_image_header(regions_, job, rank, world));
    made_for_ = by;
    changed_ = false;
    return {};
}

bool region_table::describe(const char* name, bck_tensor* described) const {
    const auto known = by_name_.find(std::string_view(name));
    if (known == by_name_.end()) return false;
    const auto& r = regions_[known->second];
    *described = {r.name.c_str(),
                  places_[known->second].ptr,
                  r.bytes,
                  r.dtype.c_str(),
                  static_cast<int>(r.shape.size()),
                  r.shape.data(),
                  r.part ? numbers_of(r.part->global_shape) : nullptr,
                  r.part ? numbers_of(r.part->begin) : nullptr};
    return true;
}

bool region_table::move_to(std::span<const bck_tensor> described) {
    if (described.size() != regions_.size()) return false;
    for (std::size_t i = 0; i < regions_.size(); ++i)
        if (!is_described(regions_[i], described[i])) return false;
    for (std::size_t i = 0; i < places_.size(); ++i) {
        place to{described[i].ptr, false};
        if (look_at(&to, described[i].bytes, places_[i].ptr).code != 0) return false;
        move(i, to);
    }
    return true;
}

outcome given_tables::find(std::span<const bck_tensor> described, const region_table& known,
                           region_table** table) {
    if (described.size() > max_regions) return bad(fmt::format("more than {} regions", max_regions));
    resolved_.assign(described.begin(), described.end());
    for (auto& d : resolved_) {
        if (d.dtype) continue;
        if (auto named = check_name(d.name); named.code != 0) return named;
        if (!known.describe(d.name, &d))
            return bad(fmt::format("\"{}\" has no dtype, and no region of this name is protected",
                                   printable(d.name)));
    }
    ++calls_;
    entry* oldest = &tables_[0];
    for (auto& e : tables_) {
        if (e.used != 0 && e.table.move_to(resolved_)) {
            e.used = calls_;
            *table = &e.table;
            return {};
        }
        if (e.used < oldest->used) oldest = &e;
    }
    region_table made;
    for (const auto& d : resolved_) {
        const auto before = made.size();
        if (auto added = made.add(d); added.code != 0) return added;
        if (made.size() == before)
            return bad(fmt::format("region \"{}\" is there twice in one list of regions", printable(d.name)));
    }
    *oldest = {std::move(made), calls_};
    *table = &oldest->table;
    return {};
}

// Most often the image has the same regions in the same order; the rest is found by name.
outcome region_table::find_in(const image_contents& image, std::vector<std::uint64_t>* offsets,
                              bool of_another) const {
    std::unordered_map<std::string_view, const region*> named;
    const auto find = [&](std::size_t i) -> const region* {
        if (i < image.regions.size() && image.regions[i].name == regions_[i].name) return &image.regions[i];
        if (named.empty())
            for (const auto& r : image.regions) named.emplace(r.name, &r);
        const auto it = named.find(regions_[i].name);
        return it == named.end() ? nullptr : it->second;
    };
    offsets->clear();
    offsets->reserve(regions_.size());
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        const auto* found = find(i);
        if (!found || !same_layout(*found, regions_[i]))
            return {BCK_E_LAYOUT, fmt::format("region \"{}\" is not in step {} with this dtype and shape",
                                              regions_[i].name, image.step)};
        // What does not say which piece it is may be any.
        if (found->part && regions_[i].part && found->part != regions_[i].part)
            return {BCK_E_LAYOUT, fmt::format("region \"{}\" is another piece of its tensor in step {}",
                                              regions_[i].name, image.step)};
        if (of_another && regions_[i].bytes != 0 && (!found->part || found->part != regions_[i].part))
            return {BCK_E_LAYOUT,
                    fmt::format(
                        "region \"{}\" of step {} is what rank {} of {} has saved: it is taken only as the "
                        "same piece (bck_protect_piece)",
                        regions_[i].name, image.step, image.rank, image.world)};
        offsets->push_back(found->offset);
    }
    return {};
}

}  // namespace banyan::ckpt
