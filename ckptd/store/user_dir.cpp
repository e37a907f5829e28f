// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/user_dir.hpp"

#include <cerrno>
#include <filesystem>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/file.hpp"

namespace banyan::ckpt {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

int open_without_magic(const std::string& path) {
    open_how how{};
    how.flags = folder_flags;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
}

std::unexpected<error> refuse(const std::string& shown, int err, const char* to = "open") {
    const auto doing = fmt::format("cannot {} {}", to, shown);
    if (is_damage(err)) return fail(errc::invalid_input, fail_errno(doing, err).error().what);
    if (err == ELOOP)
        return fail(errc::invalid_input, fmt::format("{} is a link where none is followed", shown),
                    "put the file or folder itself there");
    if (err == ENOSYS) return fail_errno(doing, err, "checkpoints need Linux 5.6 or newer");
    return fail_errno(doing, err);
}

// Of this thread alone, for a while: our own umask says nothing about the user's wishes. Where a thread can
// have none of its own, what is made is for fewer people.
class own_umask {
  public:
    explicit own_umask(mode_t mask) : apart_(is_apart()), before_(apart_ ? ::umask(mask) : 0) {}
    ~own_umask() {
        if (apart_) ::umask(before_);
    }
    own_umask(const own_umask&) = delete;
    own_umask& operator=(const own_umask&) = delete;

  private:
    static bool is_apart() {
        thread_local const bool apart = ::unshare(CLONE_FS) == 0;
        return apart;
    }
    bool apart_;
    mode_t before_;
};

}  // namespace

bool is_damage(int err) { return err == EUCLEAN || err == EBADMSG; }

result<unique_fd> open_directory(const std::string& path) {
    unique_fd fd(open_without_magic(path));
    if (!fd) return refuse(path, errno);
    return fd;
}

result<unique_fd> make_directory(const std::string& path) {
    unique_fd fd(open_without_magic(path));
    if (fd) return fd;
    if (errno != ENOENT) return refuse(path, errno);
    const auto whole = std::filesystem::path(path).lexically_normal();
    const auto clean = whole.has_filename() ? whole : whole.parent_path();
    if (!clean.has_filename() || clean == clean.parent_path())
        return fail(errc::not_found, fmt::format("cannot make {}", path));
    BANYAN_TRY(const auto parent, make_directory(clean.parent_path().string()));
    const auto name = clean.filename().string();
    const auto made = create_folder(parent.get(), name, modes_in(parent.get()), path);
    // Another node may have made it. Where somebody has put a link meanwhile, it is not followed.
    auto folder = open_folder(parent.get(), name, path);
    if (!folder && !made) return std::unexpected(made.error());
    return folder;
}

std::string unused_name(std::string_view stem) {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number)
        number = static_cast<std::uint64_t>(::syscall(SYS_gettid));
    return fmt::format(".{}.{:016x}", stem, number);
}

result<unique_fd> open_folder(int parent, const std::string& name, const std::string& shown) {
    unique_fd fd(::openat(parent, name.c_str(), folder_flags | O_NOFOLLOW));
    if (!fd) return refuse(shown, errno);
    return fd;
}

result<unique_fd> open_regular(int folder, const std::string& name, const std::string& shown,
                               std::uint64_t* bytes) {
    unique_fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    if (!fd) return refuse(shown, errno);
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) return refuse(shown, errno, "look at");
    if (!S_ISREG(st.st_mode))
        return fail(errc::invalid_input, fmt::format("{} is not a regular file", shown));
    if (bytes) *bytes = static_cast<std::uint64_t>(st.st_size);
    return fd;
}

result<std::string> read_small(int folder, const std::string& name, const std::string& shown,
                               std::size_t max_bytes) {
    BANYAN_TRY(const auto fd, open_regular(folder, name, shown));
    std::string text(max_bytes + 1, '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const auto got = ::read(fd.get(), text.data() + have, text.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return refuse(shown, errno, "read");
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    if (have > max_bytes)
        return fail(errc::invalid_input, fmt::format("{} is larger than {} bytes", shown, max_bytes));
    text.resize(have);
    return text;
}

share_modes modes_in(int directory) {
    share_modes out;
    if (::fgetxattr(directory, "system.posix_acl_default", nullptr, 0) > 0) return {0666, 0777, true};
    struct stat st {};
    if (::fstat(directory, &st) != 0 || (st.st_mode & S_ISGID) == 0) return out;
    out.file |= st.st_mode & S_IRGRP;
    out.folder |= S_ISGID | (st.st_mode & S_IRWXG);
    return out;
}

result<unique_fd> create_file(int folder, const std::string& name, int flags, const share_modes& modes,
                              const std::string& shown) {
    unique_fd fd(::openat(folder, name.c_str(), flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          modes.by_acl ? modes.file : 0600));
    if (!fd) return fail_errno(fmt::format("cannot create {}", shown), errno);
    // As in create_folder; but what was opened is what was made.
    if (!modes.by_acl && modes.file != 0600) ::fchmod(fd.get(), modes.file);
    return fd;
}

result<void> create_folder(int parent, const std::string& name, const share_modes& modes,
                           const std::string& shown) {
    const own_umask none(0);
    if (::mkdirat(parent, name.c_str(), modes.folder) != 0)
        return fail_errno(fmt::format("cannot make {}", shown), errno);
    return {};
}

result<void> sync_folder(int folder, const std::string& shown) {
    if (::fsync(folder) != 0) return fail_errno(fmt::format("cannot sync directory {}", shown), errno);
    return {};
}

result<void> replace_file(int folder, const std::string& name, std::string_view text,
                          const share_modes& modes, const std::string& shown) {
    const auto temporary = unused_name(name);
    BANYAN_TRY(const auto fd, create_file(folder, temporary, O_WRONLY, modes, shown));
    auto done = write_all(fd.get(), std::as_bytes(std::span(text)), 0, shown);
    if (done && ::fsync(fd.get()) != 0) done = fail_errno(fmt::format("cannot sync {}", shown), errno);
    if (done && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0)
        done = fail_errno(fmt::format("cannot rename to {}", shown), errno);
    if (!done) {
        ::unlinkat(folder, temporary.c_str(), 0);
        return done;
    }
    return sync_folder(folder, shown);
}

result<void> for_each_name(int folder, const std::string& shown,
                           const std::function<bool(const char* name)>& each) {
    // A descriptor of its own: the stream closes it and moves its offset.
    const int copy = ::openat(folder, ".", folder_flags);
    if (copy < 0) return fail_errno(fmt::format("cannot list {}", shown), errno);
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> stream(::fdopendir(copy), close);
    if (!stream) {
        const int err = errno;
        ::close(copy);
        return fail_errno(fmt::format("cannot list {}", shown), err);
    }
    for (;;) {
        errno = 0;
        const auto* entry = ::readdir(stream.get());
        if (!entry && errno != 0) return fail_errno(fmt::format("cannot list {}", shown), errno);
        if (!entry) return {};
        const std::string_view name(entry->d_name);
        if (name != "." && name != ".." && !each(entry->d_name)) return {};
    }
}

}  // namespace banyan::ckpt
