// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/disarm.hpp"

#include <algorithm>
#include <string_view>

#include "common/text.hpp"

namespace banyan::topo {

void disarm(std::string& text) {
    const auto plain = [](char each) {
        const auto c = static_cast<unsigned char>(each);
        return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t';
    };
    const auto high = [](char each) { return static_cast<unsigned char>(each) >= 0x80; };
    const auto end = text.end();
    for (auto at = std::find_if_not(text.begin(), end, plain); at != end;
         at = std::find_if_not(at, end, plain)) {
        if (!high(*at)) {
            const bool line_end = *at == '\r' && (at + 1 == end || at[1] == '\n');
            if (!line_end) *at = '?';
            ++at;
            continue;
        }
        const auto stop = std::find_if_not(at, end, high);
        if (!is_printable(std::string_view(&*at, static_cast<std::size_t>(stop - at))))
            std::fill(at, stop, '?');
        at = stop;
    }
}

}  // namespace banyan::topo
