// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/memory.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {

result<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view name) {
    for (const auto line : split(meminfo, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos || line.substr(0, colon) != name) continue;
        const auto value = trim(line.substr(colon + 1));
        BANYAN_TRY(const auto kib, parse_number(value.substr(0, value.find(' ')), UINT64_MAX >> 10));
        return kib << 10;
    }
    return fail(errc::not_found, fmt::format("/proc/meminfo has no {}", name));
}

finding judge_memory(std::uint64_t available, std::uint64_t wanted) {
    const auto what =
        fmt::format("{} of memory are available, expected {}", format_bytes(available), format_bytes(wanted));
    auto out = available >= wanted ? fit(what) : unfit(what);
    out.figures["memory_available_bytes"] = static_cast<double>(available);
    return out;
}

result<std::uint64_t> available_memory(const std::filesystem::path& root) {
    constexpr std::size_t most = 1u << 20;
    BANYAN_TRY(const auto text, hardware::read_small(root / "proc/meminfo", most));
    return meminfo_bytes(text, "MemAvailable");
}

}  // namespace banyan::sweep
