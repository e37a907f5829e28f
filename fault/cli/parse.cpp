// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-fault parse: a log as events, without any daemon.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/text.hpp"
#include "fault/cli/commands.hpp"
#include "fault/parse/any_log.hpp"
#include "fault/sources/line_splitter.hpp"

namespace banyan::fault {
namespace {

// What was not turned into events, and why: nobody should take silence for health.
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

}  // namespace

int parse_log(const std::string& path, const std::string& format) {
    const auto complain = [](const error& e, int status) {
        std::fprintf(stderr, "banyan-fault: %s\n", printable(e.text()).c_str());
        return status;
    };
    const auto wanted = log_format_from(format);
    if (!wanted) return complain(wanted.error(), 2);
    unique_fd file;
    if (path != "-") {
        file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file)
            return complain(
                {errc::invalid_input, fmt::format("cannot read {}: {}", path, std::strerror(errno)), {}}, 3);
    }
    any_log log(*wanted);
    line_splitter lines(64 * 1024);
    const auto show = [](const reading& r) {
        const auto text = json_line(r) + '\n';
        std::fwrite(text.data(), 1, text.size(), stdout);
    };
    const auto take = [&](std::string_view line, std::uint64_t) { log.line(line, show); };
    std::array<char, 256 * 1024> buffer;
    for (;;) {
        const auto n = ::read(file ? file.get() : STDIN_FILENO, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return complain(
                {errc::invalid_input, fmt::format("cannot read {}: {}", path, std::strerror(errno)), {}}, 3);
        if (n == 0) break;
        lines.feed({buffer.data(), static_cast<std::size_t>(n)}, take);
    }
    lines.feed("\n", [&](std::string_view last, std::uint64_t at) {
        if (!last.empty()) take(last, at);
    });
    if (std::fflush(stdout) != 0)
        return complain({errc::invalid_input, fmt::format("cannot write: {}", std::strerror(errno)), {}}, 3);
    tell(log, lines.cut_lines());
    return 0;
}

}  // namespace banyan::fault
