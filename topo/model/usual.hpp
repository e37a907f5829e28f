// SPDX-License-Identifier: BSD-3-Clause
//
// What most have, as the measure of what one lacks.
#pragma once

#include <algorithm>
#include <vector>

namespace banyan::topo::build {

template <class Value>
struct usual_value {
    Value value{};
    std::size_t have = 0;  ///< how many have it
    std::size_t of = 0;
    double share() const { return of > 0 ? static_cast<double>(have) / static_cast<double>(of) : 0; }
};

/// The value that most have; ties go to the larger.
template <class Value>
usual_value<Value> usual(std::vector<Value> values) {
    std::sort(values.begin(), values.end());
    usual_value<Value> best;
    best.of = values.size();
    for (std::size_t i = 0; i < values.size();) {
        std::size_t j = i;
        while (j < values.size() && values[j] == values[i]) ++j;
        if (j - i >= best.have) best.value = values[i], best.have = j - i;
        i = j;
    }
    return best;
}

}  // namespace banyan::topo::build
