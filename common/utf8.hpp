// SPDX-License-Identifier: BSD-3-Clause
//
// The first character of a text in UTF-8. By hand, in twenty lines: what is loaded into slurmctld, slurmstepd
// and training processes needs no more of Unicode than this, and a library is a dependency of theirs, too.
// How wide a character is only pictures ask, and utf8proc answers (topo/draw/escape.cpp).
#pragma once

#include <cstddef>
#include <string_view>

namespace banyan {

struct utf8_character {
    char32_t code = 0;
    std::size_t bytes = 1;
    bool valid = false;  ///< else `bytes` is 1, and that byte begins no character
};

/// Of a text that is not empty. Overlong forms, surrogates and what is beyond U+10FFFF are not valid.
utf8_character first_character(std::string_view text);

/// As much of it as `bytes` hold, without a part of a character at the end.
std::string_view begin_of(std::string_view text, std::size_t bytes);

/// What a terminal, a log or a picture must not be given: control characters (C0, DEL, C1), line and
/// paragraph separators, marks that turn the direction of writing.
bool commands_a_terminal(char32_t code);

}  // namespace banyan
