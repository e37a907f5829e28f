// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/output_of.hpp"

#include <fmt/format.h>

#include "common/command.hpp"

namespace banyan::topo::cli {

result<std::string> output_of(const std::vector<std::string>& words, std::chrono::milliseconds timeout,
                              std::size_t most, const std::string& package, const std::string& hint) {
    const auto& program = words.front();
    auto got = capture(words, {timeout, most, true});
    if (!got && got.error().code == errc::not_found)
        return fail(errc::not_found, fmt::format("{} is not installed", program), "install " + package);
    if (!got) return std::unexpected(std::move(got).error());
    if (got->good()) return std::move(got->text);
    switch (got->stopped) {
        case command_output::stop::late:
            return fail(errc::unavailable, program + " did not end in time", "try a longer --timeout");
        case command_output::stop::too_much:
            return fail(errc::exhausted, program + " prints without end");
        case command_output::stop::ended:
            break;
    }
    return fail(errc::unavailable, fmt::format("{} failed with status {}", program, got->end.code), hint);
}

}  // namespace banyan::topo::cli
