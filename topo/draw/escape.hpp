// SPDX-License-Identifier: BSD-3-Clause
//
// Texts from the wire on their way into a picture. A node description is 64 bytes that anybody with a port on
// the fabric can choose: nothing of it may reach a file but through here.
#pragma once

#include <string>
#include <string_view>

namespace banyan::topo::draw {

/// Valid UTF-8 without control characters, non-characters and marks that turn the direction of writing;
/// U+FFFD stands for each bad byte or character.
std::string clean(std::string_view text);
/// For XML and HTML, text and quoted attributes alike. Cleans first.
std::string escape_markup(std::string_view text);
/// For JSON inside a <script>: no '<', '>' or '&' is left, so that nothing ends the element. `json` is JSON.
std::string escape_script(std::string_view json);

/// Columns that a fixed-width font needs: 2 for what East Asian fonts draw wide, 0 for marks that combine.
/// `text` is clean.
std::size_t columns(std::string_view text);
/// At most `limit` columns of a clean text; a cut text ends in an ellipsis.
std::string fit(std::string_view text, std::size_t limit);
/// A clean text with blanks behind it, `width` columns wide. fmt's own filling counts columns in another way.
std::string fill(std::string_view text, std::size_t width);

/// The system's own name in a switch's description: "MF0;leaf-01:MQM9790/U1" -> "leaf-01". Not cleaned.
std::string_view short_name(std::string_view description);
/// What tells the switches of one director from each other: "MF0;dir1:CS8500/L03/U2" -> "L03/U2"; empty where
/// there is none. Not cleaned.
std::string_view card_name(std::string_view description);

}  // namespace banyan::topo::draw
