// SPDX-License-Identifier: BSD-3-Clause
#include "common/file.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace banyan {
namespace {

result<void> check_one(const std::filesystem::path& path, bool is_parent) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0)
        return fail_errno(fmt::format("cannot look at {}", path.string()), errno);
    if (S_ISLNK(st.st_mode))
        return fail(errc::denied, fmt::format("{} is a symbolic link", path.string()),
                    "name the file itself");
    if (st.st_uid != 0 && st.st_uid != ::geteuid())
        return fail(
            errc::denied,
            fmt::format("{} belongs to uid {}, expected 0 or {}", path.string(), st.st_uid, ::geteuid()),
            fmt::format("chown root {}", path.string()));
    const bool shared = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (shared && !(is_parent && (st.st_mode & S_ISVTX)))
        return fail(errc::denied,
                    fmt::format("{} can be written by others (mode {:o})", path.string(), st.st_mode & 07777),
                    fmt::format("chmod go-w {}", path.string()));
    return {};
}

/// A rename would put a file in the place of /dev/null, of a FIFO that others read, or of the link to the
/// file that was meant.
result<void> check_replaceable(const std::filesystem::path& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode)) return {};
    if (S_ISLNK(st.st_mode))
        return fail(errc::denied, fmt::format("{} is a symbolic link, which is not replaced", path.string()),
                    "name the file itself");
    return fail(errc::denied, fmt::format("{} is {}, expected a file or nothing", path.string(),
                                          S_ISDIR(st.st_mode)                          ? "a directory"
                                          : S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? "a device"
                                                                                       : "a FIFO or socket"));
}

}  // namespace

std::string hint_for(int err) {
    if (err != EACCES) return {};
    return fmt::format("uid {} must be able to read it: chmod o+r it, and o+x the folders above it",
                       ::geteuid());
}

result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
    unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        const int err = errno;
        return fail_errno(fmt::format("cannot open {}", path.string()), err, hint_for(err));
    }
    struct stat st {};
    std::string out;
    constexpr std::size_t chunk = 1 << 20;
    // With room for the read that finds the end: a large file must not be copied for it.
    if (::fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode))
        out.reserve(std::min<std::size_t>(static_cast<std::size_t>(st.st_size) + chunk, max_bytes + 1));
    for (;;) {
        const auto have = out.size();
        // Never asks for more than one byte beyond the limit, so that a file of exactly the limit passes.
        const auto want = std::min(chunk, max_bytes + 1 - have);
        out.resize(have + want);
        const auto got = ::read(fd.get(), out.data() + have, want);
        if (got < 0 && errno == EINTR) {
            out.resize(have);
            continue;
        }
        if (got < 0) return fail_errno(fmt::format("cannot read {}", path.string()), errno);
        out.resize(have + static_cast<std::size_t>(got));
        if (got == 0) return out;
        if (out.size() > max_bytes)
            return fail(errc::exhausted, fmt::format("{} is larger than {} bytes", path.string(), max_bytes));
    }
}

result<void> write_all(int fd, std::span<const std::byte> data, off_t offset, const std::string& name) {
    while (!data.empty()) {
        const auto put = ::pwrite(fd, data.data(), data.size(), offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_errno(fmt::format("cannot write {}", name), errno);
        data = data.subspan(static_cast<std::size_t>(put));
        offset += put;
    }
    return {};
}

result<void> sync_directory(const std::filesystem::path& directory) {
    unique_fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0)
        return fail_errno(fmt::format("cannot sync directory {}", directory.string()), errno);
    return {};
}

result<void> write_file_atomic(const std::filesystem::path& path, std::string_view data, mode_t mode) {
    BANYAN_CHECK(check_replaceable(path));
    auto directory = path.parent_path();
    if (directory.empty()) directory = ".";
    std::string temporary = fmt::format("{}/.{}.XXXXXX", directory.string(), path.filename().string());
    unique_fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd) return fail_errno(fmt::format("cannot create a file in {}", directory.string()), errno);
    const auto give_up = [&](std::unexpected<error> e) {
        ::unlink(temporary.c_str());
        return e;
    };
    if (auto written = write_all(fd.get(), std::as_bytes(std::span(data)), 0, temporary); !written)
        return give_up(std::unexpected(written.error()));
    if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0)
        return give_up(fail_errno(fmt::format("cannot sync {}", temporary), errno));
    if (::rename(temporary.c_str(), path.c_str()) != 0)
        return give_up(fail_errno(fmt::format("cannot rename {} to {}", temporary, path.string()), errno));
    return sync_directory(directory);
}

result<void> check_trusted(const std::filesystem::path& path) {
    const auto absolute = std::filesystem::absolute(path).lexically_normal();
    BANYAN_CHECK(check_one(absolute, false));
    for (auto parent = absolute.parent_path(); !parent.empty(); parent = parent.parent_path()) {
        BANYAN_CHECK(check_one(parent, true));
        if (parent == parent.root_path()) break;
    }
    return {};
}

}  // namespace banyan
