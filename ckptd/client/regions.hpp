// SPDX-License-Identifier: BSD-3-Clause
//
// What a process has protected: found by name at once, kept in the order in which the names first came.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <banyan/ckpt.h>

#include "ckptd/client/outcome.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {

/// Never NULL, which would say that nothing is given: a scalar has no extents.
inline const std::uint64_t* numbers_of(const std::vector<std::uint64_t>& extents) {
    static constexpr std::uint64_t none = 0;
    return extents.empty() ? &none : extents.data();
}

struct place {
    void* ptr = nullptr;
    bool on_device = false;
};

class region_table {
  public:
    /// A region as the caller describes it. A name that is known gets the new place and shape.
    outcome add(const bck_tensor& described);
    outcome withdraw(const char* name);
    /// What add() was told of a region, which points into this table; false where there is none.
    bool describe(const char* name, bck_tensor* described) const;
    /// Whether it has these regions, in this order, and no more: then they lie where `described` says now.
    /// Allocates nothing.
    bool move_to(std::span<const bck_tensor> described);
    void clear() { *this = {}; }

    bool empty() const { return by_name_.empty(); }
    /// From here on: as the header that was made last has them.
    std::size_t size() const { return regions_.size(); }
    const region& at(std::size_t i) const { return regions_[i]; }
    const place& place_of(std::size_t i) const { return places_[i]; }
    /// A region in a GPU's memory, or nullptr.
    const void* on_a_device() const { return on_device_; }
    /// Makes the image's header, where something has changed since the last one, or it was another rank's.
    result<void> make_header(std::uint64_t job, std::uint32_t rank, std::uint32_t world);
    image_header& header() { return header_; }

    /// Where each region lies in an image; every one must be there as it is here. `of_another`: what another
    /// rank has saved, which is taken only where both say that it is the same piece.
    outcome find_in(const image_contents& image, std::vector<std::uint64_t>* offsets,
                    bool of_another = false) const;

  private:
    struct hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct saver {
        std::uint64_t job = 0;
        std::uint32_t rank = 0, world = 0;
        bool operator==(const saver&) const = default;
    };
    void close_gaps();
    void move(std::size_t i, const place& to);

    std::vector<region> regions_;  ///< one without a name was withdrawn
    std::vector<place> places_;
    std::unordered_map<std::string, std::size_t, hash, std::equal_to<>> by_name_;
    const void* on_device_ = nullptr;
    image_header header_;
    saver made_for_;
    bool changed_ = true;
};

/// The layouts of the last few calls that brought their regions along.
class given_tables {
  public:
    /// A table of exactly these. One without a dtype is as `known` has it.
    outcome find(std::span<const bck_tensor> described, const region_table& known, region_table** table);
    void clear() { *this = {}; }

  private:
    struct entry {
        region_table table;
        std::uint64_t used = 0;  ///< by which call, counted; 0 = by none
    };
    std::array<entry, 4> tables_;
    std::uint64_t calls_ = 0;
    std::vector<bck_tensor> resolved_;  ///< of the call under way: its memory stays
};

}  // namespace banyan::ckpt
