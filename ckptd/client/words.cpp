// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/words.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::ckpt {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

void say(const rank_name& who, std::string_view text) {
    const auto of = who.state.empty() ? std::string() : fmt::format("state {}: ", who.state);
    std::fprintf(stderr, "banyan: %s%s\n", of.c_str(), printable(text).c_str());
}

}  // namespace banyan::ckpt
