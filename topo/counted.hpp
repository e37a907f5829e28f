// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace banyan::topo {

/// "12 links", "1 link"; `many` is for plurals that an "s" does not make.
inline std::string counted(std::size_t n, const char* one, const char* many = nullptr) {
    return n != 1 && many ? fmt::format("{} {}", n, many) : fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

}  // namespace banyan::topo
