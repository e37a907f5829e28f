// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/disks.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "sweep/own_mounts.hpp"

namespace banyan::sweep {
namespace {

/// As df counts: of what users may have, rounded up.
std::uint64_t percent_used(std::uint64_t used, std::uint64_t left) {
    const auto all = static_cast<long double>(used) + static_cast<long double>(left);
    if (all <= 0) return 0;
    const auto share = 100 * static_cast<long double>(used) / all;
    const auto whole = static_cast<std::uint64_t>(share);
    return static_cast<long double>(whole) < share ? whole + 1 : whole;
}

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// Without a name from the beginning where the file system can; else its name is gone before it is written.
unique_fd nameless_file(const std::string& folder) {
    unique_fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    auto name = folder + "/.banyan-sweep.XXXXXX";
    fd.reset(::mkostemp(name.data(), O_CLOEXEC));
    if (fd) ::unlink(name.c_str());
    return fd;
}

}  // namespace

finding judge_disk(const std::string& folder, const disk_view& v, const disk_limits& limits) {
    if (v.failed_with != 0) {
        const auto why = std::generic_category().message(v.failed_with);
        const auto text = fmt::format("{}: cannot {}: {}", folder, v.failed_at, why);
        if (v.failed_with == EACCES || v.failed_with == EPERM)
            return unknown(
                {errc::denied, text, fmt::format("uid {} has to be able to write there", ::geteuid())});
        return unfit(text);
    }
    const auto full = percent_used(minus(v.blocks, v.blocks_free), v.blocks_for_users);
    const auto taken = percent_used(minus(v.inodes, v.inodes_free), v.inodes_free);
    if (full > limits.fill)
        return unfit(fmt::format("{} is {} % full, at most {} % expected", folder, full, limits.fill));
    if (v.inodes > 0 && taken > limits.inodes)
        return unfit(fmt::format("{} has {} % of its inodes in use, at most {} % expected", folder, taken,
                                 limits.inodes));
    return fit(v.inodes > 0 ? fmt::format("{} takes a file, is {} % full, inodes {} %", folder, full, taken)
                            : fmt::format("{} takes a file, is {} % full", folder, full));
}

disk_view look_at_disk(const std::string& folder) {
    const auto failed = [](const char* at) {
        disk_view v;
        v.failed_with = errno;
        v.failed_at = at;
        return v;
    };
    const auto fd = nameless_file(folder);
    if (!fd) return failed("make a file");
    const std::array<std::byte, 4096> page{};
    if (const auto put = ::pwrite(fd.get(), page.data(), page.size(), 0); put != std::ssize(page)) {
        if (put >= 0) errno = ENOSPC;
        return failed("write");
    }
    if (::fsync(fd.get()) != 0) return failed("write");
    struct statvfs st {};
    if (::fstatvfs(fd.get(), &st) != 0) return failed("look at the file system");
    return {{}, 0, st.f_blocks, st.f_bfree, st.f_bavail, st.f_files, st.f_ffree};
}

finding check_disk(const std::filesystem::path& root, const std::string& folder, const disk_limits& limits) {
    const auto view = look_at_disk(folder);
    if (view.failed_with == EROFS) {
        std::error_code ec;
        const auto real = std::filesystem::canonical(folder, ec);
        const auto seen = look_at_mounts(root);
        if (!ec && seen && is_read_only_here_alone(*seen, real.string()))
            return unknown({errc::denied,
                            folder +
                                " is read-only for this process, which has mounts of its own: whether it "
                                "is for the node is not known",
                            "run it outside of the service's sandbox"});
    }
    return judge_disk(folder, view, limits);
}

}  // namespace banyan::sweep
