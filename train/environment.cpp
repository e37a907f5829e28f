// SPDX-License-Identifier: BSD-3-Clause
#include "train/environment.hpp"

#include <cstring>

#include <fmt/format.h>

namespace banyan::train {

result<void> check_environment(const char* const* entries, std::uint32_t count) {
    const auto too_large = [](const std::string& what) {
        return fail(errc::invalid_input, "the job's SPANK environment " + what,
                    "it is set by options of SPANK plugins and by SLURM_SPANK_ variables of the submitting "
                    "shell: unset what is large");
    };
    if (count > max_environment_entries)
        return too_large(fmt::format("has {} entries; at most {} are taken", count, max_environment_entries));
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!entries[i]) continue;
        const auto length = std::strlen(entries[i]);
        if (length > max_environment_entry)
            return too_large(
                fmt::format("has an entry of {} bytes; at most {} are taken", length, max_environment_entry));
        bytes += length;
    }
    if (bytes > max_environment_bytes)
        return too_large(fmt::format("has {} bytes; at most {} are taken", bytes, max_environment_bytes));
    return {};
}

}  // namespace banyan::train
