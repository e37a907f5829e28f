// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/protocol/left_ends.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr auto ended = ".ended-";

std::string file_of(const std::string& socket, std::uint64_t job) {
    return fmt::format("{}{}{}", socket, ended, job);
}

}  // namespace

// Whoever holds it has this lock (local_server::lock).
bool is_held(const std::string& socket) {
    const unique_fd lock(::open((socket + ".lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void leave_end(const std::string& socket, std::uint64_t job) {
    (void)write_file_atomic(file_of(socket, job), "", 0644);
}

void forget_end(const std::string& socket, std::uint64_t job) { ::unlink(file_of(socket, job).c_str()); }

std::vector<std::uint64_t> take_ends(const std::string& socket) {
    std::vector<std::uint64_t> out;
    const std::filesystem::path path(socket);
    const auto begin = path.filename().string() + ended;
    std::error_code ec;
    for (std::filesystem::directory_iterator at(path.parent_path(), ec), end; !ec && at != end;
         at.increment(ec)) {
        const auto name = at->path().filename().string();
        if (!name.starts_with(begin)) continue;
        const auto job = parse_number(std::string_view(name).substr(begin.size()), UINT64_MAX);
        if (job && check_trusted(at->path())) out.push_back(*job);
    }
    for (const auto job : out) forget_end(socket, job);
    return out;
}

}  // namespace banyan::ckpt
