// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/switched_off.hpp"

#include <algorithm>
#include <chrono>

#include "common/command.hpp"
#include "common/text.hpp"

namespace banyan::topo::cli {

result<std::vector<std::string>> switched_off() {
    BANYAN_TRY(const auto text, run_command({"sinfo", "-h", "-N", "-o", "%N %t"}, std::chrono::seconds(30)));
    return read_switched_off(text);
}

std::vector<std::string> read_switched_off(std::string_view text) {
    constexpr std::string_view signs = "~#%";
    std::vector<std::string> out;
    for (const auto line : split(text, '\n')) {
        const auto blank = line.find(' ');
        if (blank == line.npos || line.find_first_of(signs, blank) == line.npos) continue;
        out.emplace_back(line.substr(0, blank));
    }
    // A node of two partitions has two lines.
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace banyan::topo::cli
