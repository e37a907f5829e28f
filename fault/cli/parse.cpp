// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-fault parse: a log as events, without any daemon.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "fault/cli/commands.hpp"
#include "fault/cli/terminal.hpp"
#include "fault/parse/any_log.hpp"

namespace banyan::fault {
void tell(const any_log& log, std::uint64_t cut) {
    const auto& seen = log.seen();
    const bool known = log.format() != log_format::guess;
    auto text = fmt::format("banyan-fault: {} lines of {}, {} events, {} lines not recognised", seen.lines,
                            known ? fmt::format("format {}", name_of(log.format())) : "an unknown format",
                            seen.events, seen.foreign);
    if (cut > 0) text += fmt::format(", {} cut since they are too long", cut);
    text += '\n';
    if (seen.refused > 0)
        text += fmt::format(
            "banyan-fault: {} lines look like faults, but users may have written them: if the file receives "
            "nothing but facility kern, say --format syslog\n",
            seen.refused);
    std::fputs(text.c_str(), stderr);
}

int parse_log(const std::string& path, const std::string& format, std::uint32_t branch) {
    const auto wanted = log_format_from(format);
    if (!wanted) return complain(wanted.error(), 2);
    any_log log(*wanted, branch);
    const auto show = [](const reading& r) {
        const auto text = json_line(r) + '\n';
        std::fwrite(text.data(), 1, text.size(), stdout);
    };
    const auto cut = read_lines(path, 64 * 1024, [&](std::string_view line) { log.line(line, show); });
    if (!cut) return complain(cut.error(), 3);
    if (std::fflush(stdout) != 0)
        return complain({errc::invalid_input, fmt::format("cannot write: {}", std::strerror(errno)), {}}, 3);
    tell(log, *cut);
    return 0;
}

}  // namespace banyan::fault
