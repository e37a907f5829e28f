// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm's bitmaps and lists as C++ likes them.
#pragma once

#include <memory>
#include <vector>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

struct bitmap_deleter {
    void operator()(bitstr_t* b) const { bit_free(b); }
};
using bitmap = std::unique_ptr<bitstr_t, bitmap_deleter>;

inline bool is_set(const bitstr_t* b, bitoff_t bit) { return bit_test(const_cast<bitstr_t*>(b), bit); }

/// Ascending.
inline std::vector<int> set_bits(const bitstr_t* b) {
    std::vector<int> out;
    const auto size = bit_size(const_cast<bitstr_t*>(b));
    for (bitoff_t bit = 0; bit < size; ++bit)
        if (is_set(b, bit)) out.push_back(static_cast<int>(bit));
    return out;
}

/// The entries of one of Slurm's lists; none when there is no list.
template <class T>
std::vector<T*> entries(list_ptr list) {
    std::vector<T*> out;
    if (!list) return out;
    list_iterator_ptr at = list_iterator_create(list);
    while (void* entry = list_next(at)) out.push_back(static_cast<T*>(entry));
    list_iterator_destroy(at);
    return out;
}

}  // namespace banyan::slurm
