// SPDX-License-Identifier: BSD-3-Clause
#include "fault/history/history_file.hpp"

#include <ctime>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/fd.hpp"

namespace banyan::fault {

// By name: one that closes a descriptor of a database loses the locks of whoever has it open in this process.
void make_private(const std::filesystem::path& path) {
    (void)unique_fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    for (const char* rest : {"", "-wal", "-shm"}) {
        const auto name = path.string() + rest;
        struct stat st {};
        if (::stat(name.c_str(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) != 0)
            ::chmod(name.c_str(), st.st_mode & 07700);
    }
}

std::string path_aside(const std::filesystem::path& path) {
    const auto base =
        fmt::format("{}.damaged-{:%Y%m%d-%H%M%S}", path.string(), fmt::gmtime(std::time(nullptr)));
    auto out = base;
    std::error_code ec;
    for (int n = 2; std::filesystem::exists(out, ec); ++n) out = fmt::format("{}-{}", base, n);
    return out;
}

}  // namespace banyan::fault
