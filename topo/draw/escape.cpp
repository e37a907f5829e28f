// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/escape.hpp"

#include <utf8proc.h>

#include "common/utf8.hpp"

namespace banyan::topo::draw {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

/// Non-characters and the byte order mark are not for a file of XML either.
bool harmless(char32_t c) {
    if ((c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef) || c == 0xfeff) return false;
    return !commands_a_terminal(c);
}

/// By Unicode's tables: 2 for what East Asian fonts draw wide and emoji, 0 for marks that combine. A byte
/// that is no character is shown as one.
std::size_t columns_of(const utf8_character& c) {
    return c.valid ? static_cast<std::size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c.code))) : 1;
}

}  // namespace

std::string clean(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto c = first_character(text);
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
        const auto c = first_character(text);
        out += columns_of(c);
        text.remove_prefix(c.bytes);
    }
    return out;
}

std::string fit(std::string_view text, std::size_t limit) {
    if (columns(text) <= limit) return std::string(text);
    if (limit == 0) return {};
    std::size_t used = 1, bytes = 0;
    while (bytes < text.size()) {
        const auto c = first_character(text.substr(bytes));
        used += columns_of(c);
        if (used > limit) break;
        bytes += c.bytes;
    }
    return std::string(text.substr(0, bytes)) + "\u2026";
}

std::string fill(std::string_view text, std::size_t width) {
    std::string out(text);
    if (const auto used = columns(text); used < width) out.append(width - used, ' ');
    return out;
}

std::string_view short_name(std::string_view description) {
    auto name = description;
    if (const auto at = name.find(';'); at != std::string_view::npos) name.remove_prefix(at + 1);
    name = name.substr(0, name.find(':'));
    return name.empty() ? description : name;
}

std::string_view card_name(std::string_view description) {
    for (auto at = description.find('/'); at != std::string_view::npos; at = description.find('/', at + 1)) {
        const auto card = description.substr(at + 1);
        if (card.size() >= 2 && (card[0] == 'L' || card[0] == 'S') && card[1] >= '0' && card[1] <= '9')
            return card;
    }
    return {};
}

}  // namespace banyan::topo::draw
