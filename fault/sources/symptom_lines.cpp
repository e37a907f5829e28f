// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/symptom_lines.hpp"

#include <array>

namespace banyan::fault {

// Most lines are none of these: what they begin with says so.
maybe_symptom find_symptom_line(std::string_view text) {
    if (text.size() < 16) return {};
    if (auto found = lines::hca(text)) return found;
    if (auto found = lines::storage(text)) return found;
    if (auto found = lines::machine(text)) return found;
    return lines::pcie(text);
}

}  // namespace banyan::fault
