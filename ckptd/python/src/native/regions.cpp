// SPDX-License-Identifier: BSD-3-Clause
#include "native/regions.hpp"

#include <stdexcept>

namespace banyan::python {
namespace {

/// A scalar has no extents, but the C library takes NULL for "no piece".
const std::uint64_t* numbers(const extents& of) {
    static constexpr std::uint64_t none = 0;
    return of.empty() ? &none : of.data();
}

/// Never NULL: an empty shard has no memory, and nobody reads there.
void* somewhere(std::uintptr_t ptr) {
    static char none = 0;
    return ptr != 0 ? reinterpret_cast<void*>(ptr) : &none;
}

}  // namespace

void regions::add(std::string name, std::string dtype, std::uint64_t bytes, extents shape,
                  std::optional<extents> global, std::optional<extents> offset, std::uintptr_t ptr) {
    if (global.has_value() != offset.has_value())
        throw std::invalid_argument("global shape and offset go together");
    auto& e = kept_.emplace_back(entry{std::move(name), std::move(dtype), std::move(shape), {}, {}});
    if (global) e.global = std::move(*global), e.offset = std::move(*offset);
    if (global && (e.global.size() != e.shape.size() || e.offset.size() != e.shape.size()))
        throw std::invalid_argument(e.name +
                                    ": shape, global shape and offset differ in their number of extents");
    list_.push_back({e.name.c_str(), somewhere(bytes == 0 ? 0 : ptr), bytes, e.dtype.c_str(),
                     static_cast<int>(e.shape.size()), numbers(e.shape), global ? numbers(e.global) : nullptr,
                     global ? numbers(e.offset) : nullptr});
}

std::unique_ptr<regions> regions::with_more(const std::vector<std::size_t>& again) const {
    auto out = std::make_unique<regions>();
    const auto take = [&](std::size_t i, const std::string& suffix) {
        const auto& e = kept_.at(i);
        out->add(e.name + suffix, e.dtype, list_[i].bytes, e.shape, {}, {},
                 reinterpret_cast<std::uintptr_t>(list_[i].ptr));
    };
    for (std::size_t i = 0; i < list_.size(); ++i) take(i, "");
    for (std::size_t i = 0; i < again.size(); ++i) take(again[i], "#" + std::to_string(i));
    return out;
}

void regions::resize_bytes(std::size_t i, std::uint64_t bytes) {
    kept_[i].shape = {bytes};
    list_[i].bytes = bytes;
    list_[i].shape = kept_[i].shape.data();
}

}  // namespace banyan::python
