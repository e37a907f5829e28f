// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/output.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/file.hpp"

namespace banyan::topo::cli {
namespace {

result<void> send(const std::string& path, std::string_view text) {
    // Without O_CREAT and O_TRUNC: what is there is used, and never made anew.
    unique_fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail_errno(fmt::format("cannot open {}", path), errno);
    while (!text.empty()) {
        const auto put = ::write(fd.get(), text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_errno(fmt::format("cannot write to {}", path), errno);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

}  // namespace

std::string named_file(const std::string& path) {
    return path.empty() ? "the name is empty: give the file that is to be written" : std::string();
}

bool is_stream(const std::string& path) {
    struct stat st {};
    return path.empty() || (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

bool same_output(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || is_stream(a) || is_stream(b)) return false;
    std::error_code failed;
    const auto plain = [&failed](const std::string& path) {
        return std::filesystem::weakly_canonical(path, failed).lexically_normal();
    };
    // What cannot be looked up cannot be written either; then that is said.
    return a == b || (plain(a) == plain(b) && !failed);
}

result<void> write_output(const std::string& path, std::string_view text) {
    if (!path.empty()) return is_stream(path) ? send(path, text) : write_file_atomic(path, text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return {};
    return fail_errno("cannot write to standard output", errno, "-o FILE writes to a file");
}

result<void> finish_stdout() {
    errno = 0;
    const bool good = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
    if (good) return {};
    return fail_errno("cannot write to standard output", errno != 0 ? errno : EIO,
                      "what was printed is not whole");
}

}  // namespace banyan::topo::cli
