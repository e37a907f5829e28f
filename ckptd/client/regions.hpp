// SPDX-License-Identifier: BSD-3-Clause
//
// What a process has protected: found by name at once, kept in the order in which the names first came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ckptd/client/outcome.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {

struct place {
    void* ptr = nullptr;
    bool on_device = false;
};

class region_table {
  public:
    /// A region as the caller of bck_protect describes it. A name that is known gets the new place and shape.
    /// `global_shape` and `begin`: of the tensor of which it is a piece, both NULL where it is none.
    outcome add(const char* name, void* ptr, std::size_t bytes, const char* dtype, const std::uint64_t* shape,
                int ndim, const std::uint64_t* global_shape, const std::uint64_t* begin);
    outcome withdraw(const char* name);
    void clear() { *this = {}; }

    bool empty() const { return by_name_.empty(); }
    /// From here on: as the header that was made last has them.
    std::size_t size() const { return regions_.size(); }
    const region& at(std::size_t i) const { return regions_[i]; }
    const place& place_of(std::size_t i) const { return places_[i]; }
    /// A region in a GPU's memory, or nullptr.
    const void* on_a_device() const;
    /// Whether the header that was made last describes something else.
    bool changed() const { return changed_; }
    result<image_header> make_header(std::uint64_t job, std::uint32_t rank, std::uint32_t world);
    void attached() { changed_ = false; }

    /// Where each region lies in an image; every one must be there as it is here.
    outcome find_in(const image_contents& image, std::vector<std::uint64_t>* offsets) const;

  private:
    void close_gaps();

    std::vector<region> regions_;  ///< one without a name was withdrawn
    std::vector<place> places_;
    std::unordered_map<std::string, std::size_t> by_name_;
    bool changed_ = true;
};

}  // namespace banyan::ckpt
