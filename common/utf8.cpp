// SPDX-License-Identifier: BSD-3-Clause
#include "common/utf8.hpp"

namespace banyan {

utf8_character first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto first = byte(0);
    if (first < 0x80) return {first, 1, true};
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
    char32_t code = first & (0x7f >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    static constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < smallest[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
    return {code, bytes, true};
}

std::string_view begin_of(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    // A character has at most four bytes. What is none is cut anywhere.
    for (std::size_t back = 0; back <= 3 && back <= bytes; ++back)
        if ((static_cast<unsigned char>(text[bytes - back]) & 0xc0) != 0x80)
            return text.substr(0, bytes - back);
    return text.substr(0, bytes);
}

bool commands_a_terminal(char32_t code) {
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e ||
           code == 0x200f || code == 0x061c;
}

}  // namespace banyan
