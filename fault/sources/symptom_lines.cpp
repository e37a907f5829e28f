// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/symptom_lines.hpp"

#include <array>

namespace banyan::fault {

std::span<const recogniser> recognisers() {
    static constexpr std::array<recogniser, 4> all{{{"hca", lines::hca},
                                                    {"storage", lines::storage},
                                                    {"machine", lines::machine},
                                                    {"pcie", lines::pcie}}};
    return all;
}

// Most lines are none of these: what they begin with says so.
maybe_symptom find_symptom_line(std::string_view text) {
    if (text.size() < 16) return {};
    for (const auto& one : recognisers())
        if (auto found = one.read(text)) return found;
    return {};
}

}  // namespace banyan::fault
