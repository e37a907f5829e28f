// SPDX-License-Identifier: BSD-3-Clause
#include "fault/cli/terminal.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/text.hpp"
#include "fault/sources/line_splitter.hpp"

namespace banyan::fault {

using nlohmann::json;

void put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

void show(const std::string& text) {
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
        const auto end = rest.find('\n');
        out += printable(rest.substr(0, end));
        if (end == std::string_view::npos) break;
        out += '\n';
        rest.remove_prefix(end + 1);
    }
    put(out);
}

std::string as_text(const json& j, int indent) {
    return j.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

int complain(const error& e, int status) {
    std::fprintf(stderr, "banyan-fault: %s\n", printable(e.text()).c_str());
    return status;
}

std::string cut(std::string text, std::size_t width) {
    if (text.size() <= width) return text;
    text.resize(width - 1);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    return text + "~";
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
    std::string out;
    while (text.size() > width) {
        auto at = text.rfind(' ', width);
        if (at == std::string_view::npos || at == 0) at = width;
        out += text.substr(0, at);
        out += '\n' + std::string(indent, ' ');
        text.remove_prefix(std::min(text.size(), at + (at < text.size() && text[at] == ' ' ? 1 : 0)));
    }
    return out.append(text) + '\n';
}

result<std::uint64_t> read_lines(const std::string& path, std::size_t longest,
                                 const std::function<void(std::string_view)>& take) {
    const auto failed = [&path] {
        return fail(errc::invalid_input, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    };
    unique_fd file;
    if (path != "-") {
        file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) return failed();
    }
    line_splitter lines(longest);
    const auto each = [&take](std::string_view line, std::uint64_t) { take(line); };
    std::array<char, 256 * 1024> buffer;
    for (;;) {
        const auto n = ::read(file ? file.get() : STDIN_FILENO, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed();
        if (n == 0) break;
        lines.feed({buffer.data(), static_cast<std::size_t>(n)}, each);
    }
    lines.feed("\n", [&take](std::string_view last, std::uint64_t) {
        if (!last.empty()) take(last);
    });
    return lines.cut_lines();
}

}  // namespace banyan::fault
