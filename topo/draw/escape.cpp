// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/escape.hpp"

#include <cstdint>

namespace banyan::topo::draw {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct character {
    char32_t code = 0;
    std::size_t bytes = 1;
    bool valid = false;
};

/// The character at the start of a text that is not empty. Overlong forms and surrogates are not valid.
character decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
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

bool harmless(char32_t c) {
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;
    if ((c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef)) return false;
    // Direction marks, line and paragraph separators, and the byte order mark.
    return !((c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
             c == 0x061c || c == 0xfeff);
}

bool wide(char32_t c) {
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
           c >= 0x1f300;
}

}  // namespace

std::string clean(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto c = decode(text);
        out += c.valid && harmless(c.code) ? text.substr(0, c.bytes) : replacement;
        text.remove_prefix(c.bytes);
    }
    return out;
}

std::string escape_markup(std::string_view text) {
    std::string out;
    for (const char c : clean(text)) switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    return out;
}

std::string escape_script(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    // Outside its strings JSON has none of the three, so the escape is always inside one.
    for (const char c : json) switch (c) {
            case '<':
                out += "\\u003c";
                break;
            case '>':
                out += "\\u003e";
                break;
            case '&':
                out += "\\u0026";
                break;
            default:
                out += c;
        }
    return out;
}

std::size_t columns(std::string_view text) {
    std::size_t out = 0;
    while (!text.empty()) {
        const auto c = decode(text);
        out += wide(c.code) ? 2 : 1;
        text.remove_prefix(c.bytes);
    }
    return out;
}

std::string fit(std::string_view text, std::size_t limit) {
    if (columns(text) <= limit) return std::string(text);
    if (limit == 0) return {};
    std::size_t used = 1, bytes = 0;
    while (bytes < text.size()) {
        const auto c = decode(text.substr(bytes));
        used += wide(c.code) ? 2 : 1;
        if (used > limit) break;
        bytes += c.bytes;
    }
    return std::string(text.substr(0, bytes)) + "\u2026";
}

std::string_view short_name(std::string_view description) {
    auto name = description;
    if (const auto at = name.find(';'); at != std::string_view::npos) name.remove_prefix(at + 1);
    name = name.substr(0, name.find(':'));
    return name.empty() ? description : name;
}

}  // namespace banyan::topo::draw
