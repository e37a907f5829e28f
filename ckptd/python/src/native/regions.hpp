// SPDX-License-Identifier: BSD-3-Clause
//
// A list of bck_tensor that owns its names and extents, but not the memory that it points to.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "native/library.hpp"

namespace banyan::python {

using extents = std::vector<std::uint64_t>;

class regions {
  public:
    /// `global` and `offset`: both, or none where the region is no part of a larger tensor.
    void add(std::string name, std::string dtype, std::uint64_t bytes, extents shape,
             std::optional<extents> global, std::optional<extents> offset, std::uintptr_t ptr);
    std::size_t size() const { return list_.size(); }
    const bck_tensor* data() const { return list_.data(); }
    void place(std::size_t i, std::uintptr_t ptr) { list_[i].ptr = reinterpret_cast<void*>(ptr); }
    /// The same and, under names of their own, these once more.
    std::unique_ptr<regions> with_more(const std::vector<std::size_t>& again) const;
    /// Gives a one-dimensional U8 region another size.
    void resize_bytes(std::size_t i, std::uint64_t bytes);

  private:
    struct entry {
        std::string name, dtype;
        extents shape, global, offset;
    };
    std::deque<entry> kept_;  // its strings and extents stay where they are
    std::vector<bck_tensor> list_;
};

}  // namespace banyan::python
