// SPDX-License-Identifier: BSD-3-Clause
#include "fault/cli/moment.hpp"

#include <algorithm>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::fault {

result<std::int64_t> moment_from(const std::string& text, std::int64_t now_ms) {
    if (const auto ago = parse_duration(text)) return std::max<std::int64_t>(0, now_ms - ago->count());
    for (const char* form :
         {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
        std::tm t{};
        t.tm_isdst = -1;
        const char* end = ::strptime(text.c_str(), form, &t);
        if (!end) continue;
        const std::string_view rest = end;
        if (!rest.empty() && rest != "Z") continue;
        const auto seconds = rest.empty() ? std::mktime(&t) : ::timegm(&t);
        if (seconds >= 0) return static_cast<std::int64_t>(seconds) * 1000;
    }
    return fail(errc::invalid_input, fmt::format("\"{}\" is no time", text),
                "expected one such as \"2h\" (ago), \"2026-11-23\" or \"2026-11-23T13:45:00\"");
}

}  // namespace banyan::fault
