// SPDX-License-Identifier: BSD-3-Clause
//
// Where a card sits on the PCI bus, as the drivers print it: with and without domain, in 4 or 8 digits.
#include <algorithm>
#include <array>
#include <cctype>

#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

std::optional<std::pair<std::string, std::string_view>> take_bdf(std::string_view text) {
    const auto hex = [&](std::size_t from) {
        std::size_t n = 0;
        while (from + n < text.size() && std::isxdigit(static_cast<unsigned char>(text[from + n]))) ++n;
        return n;
    };
    std::array<std::string_view, 3> part{};
    std::size_t at = 0, parts = 0;
    for (; parts < 3; ++parts) {
        const auto n = hex(at);
        if (n < 2 || n > 8) break;
        part[parts] = text.substr(at, n);
        at += n;
        if (parts < 2 && at < text.size() && text[at] == ':' && hex(at + 1) >= 2)
            ++at;
        else {
            ++parts;
            break;
        }
    }
    if (parts < 2) return {};
    std::string out = parts == 3 ? std::string(part[0]) : "0000";
    if (out.size() > 4) out.erase(0, std::min(out.find_first_not_of('0'), out.size() - 4));  // "00000000:86"
    if (out.size() < 4) out.insert(0, 4 - out.size(), '0');
    for (std::size_t i = parts == 3 ? 1 : 0; i < parts; ++i) {
        if (part[i].size() != 2) return {};
        (out += ':') += part[i];
    }
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
    if (at + 1 < text.size() && text[at] == '.' && std::isdigit(static_cast<unsigned char>(text[at + 1])))
        at += 2;
    return std::pair{std::move(out), text.substr(at)};
}

}  // namespace banyan::fault
