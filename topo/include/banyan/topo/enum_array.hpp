// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

namespace banyan::topo {

/// One value for each of the first `Count` values of an enumeration that counts from 0.
template <class Enum, class Value, std::size_t Count>
struct enum_array : std::array<Value, Count> {
    using std::array<Value, Count>::operator[];
    constexpr Value& operator[](Enum e) { return (*this)[static_cast<std::size_t>(e)]; }
    constexpr const Value& operator[](Enum e) const { return (*this)[static_cast<std::size_t>(e)]; }
};

}  // namespace banyan::topo
