// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kmsg_record.hpp"

#include <algorithm>
#include <cctype>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

bool take_head(std::string_view& raw, kmsg_record& out) {
    auto rest = raw;
    const auto priority = scan::take_number(rest);
    if (!priority || !scan::drop(rest, ",")) return false;
    const auto sequence = scan::take_long(rest);
    if (!sequence || !scan::drop(rest, ",")) return false;
    const auto usec = scan::take_long(rest);
    if (!usec || !scan::drop(rest, ",")) return false;
    const auto end = rest.find(';');
    if (end > 64) return false;  // or nowhere
    out.has_head = true;
    out.priority = *priority;
    out.sequence = *sequence;
    out.usec = *usec;
    const auto flags = rest.substr(0, std::min(rest.find(','), end));
    out.continued = flags.find_first_of("c+") != std::string_view::npos;
    raw = rest.substr(end + 1);
    return true;
}

// Length of the UTF-8 character at the front, 0 when it is not one.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto lead = byte(0);
    const std::size_t n = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    if (n == 0 || n > text.size()) return 0;
    for (std::size_t i = 1; i < n; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    if (n == 3 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f))) return 0;
    if (n == 4 && ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))) return 0;
    return n;
}

}  // namespace

kmsg_record parse_kmsg(std::string_view raw, bool& dirty) {
    kmsg_record out;
    dirty = false;
    take_head(raw, out);
    out.text.reserve(raw.size());
    while (!raw.empty()) {
        if (out.has_head && raw.size() >= 4 && raw.starts_with("\\x")) {
            auto digits = raw.substr(2, 2);
            if (const auto value = scan::take_hex_number(digits); value && digits.empty()) {
                out.text += *value == '\n'                    ? '\n'
                            : *value >= 0x20 && *value < 0x7f ? static_cast<char>(*value)
                                                              : ' ';
                raw.remove_prefix(4);
                continue;
            }
        }
        const auto n = utf8_length(raw);
        const auto c = static_cast<unsigned char>(raw.front());
        // U+0080 to U+009F steer terminals as well.
        const bool steers = c == 0xc2 && n == 2 && static_cast<unsigned char>(raw[1]) < 0xa0;
        if (n == 0 || steers || (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f) {
            dirty = true;
            out.text += n == 0 ? '?' : ' ';
            raw.remove_prefix(std::max<std::size_t>(n, 1));
            continue;
        }
        out.text += raw.substr(0, n);
        raw.remove_prefix(n);
    }
    return out;
}

}  // namespace banyan::fault
