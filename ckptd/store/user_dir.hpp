// SPDX-License-Identifier: BSD-3-Clause
//
// Opening things in a user's own directory, whatever he has put there. The directory is opened once and all
// below it by name from that descriptor, so that nothing can be exchanged on the way. Only regular files and
// real folders are opened, links below the directory are refused, and no open waits (for a FIFO's other end,
// for a lease). Links of /proc ("magic links") are refused everywhere: they lead to what the daemon itself
// has open, other users' memory among it. All calls block as storage does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// The user's directory itself; ordinary links in its path are his to set.
result<unique_fd> open_directory(const std::string& path);
/// The same, after making what is missing of it.
result<unique_fd> make_directory(const std::string& path);
/// What an errno of a file or folder means: a file system that sums up what it keeps says that it is damaged,
/// and says it again. Any other but ENOENT says nothing of what is there: EIO, too, which network file
/// systems have for a server that is away.
bool is_damage(int err);
/// A real folder in `parent`. `shown` is the path for messages, here and below. Here and in what follows
/// errc::invalid_input is what has been seen to be damaged, or to be something else.
result<unique_fd> open_folder(int parent, const std::string& name, const std::string& shown);
/// A regular file in `folder`, for reading. `bytes` gets its size.
result<unique_fd> open_regular(int folder, const std::string& name, const std::string& shown,
                               std::uint64_t* bytes = nullptr);
/// A small regular file as text; more than `max_bytes` is refused.
result<std::string> read_small(int folder, const std::string& name, const std::string& shown,
                               std::size_t max_bytes);

/// Who besides the owner may use what is made in a directory: nobody, unless the directory is made for
/// sharing. With a default ACL the kernel applies that; with the set-group-id bit the group gets on folders
/// what it has on the directory, and may read files where it may read the directory.
struct share_modes {
    mode_t file = 0600;
    mode_t folder = 0700;
    bool by_acl = false;
};
share_modes modes_in(int directory);
/// open(2) of a new file with `flags` besides O_CREAT|O_EXCL, with those modes.
result<unique_fd> create_file(int folder, const std::string& name, int flags, const share_modes& modes,
                              const std::string& shown);
/// With its modes from the start: another member of the group may put another folder under its name at once,
/// and nothing is done to that.
result<void> create_folder(int parent, const std::string& name, const share_modes& modes,
                           const std::string& shown);
/// Temporary name, fsync, rename, fsync of the folder.
result<void> replace_file(int folder, const std::string& name, std::string_view text,
                          const share_modes& modes, const std::string& shown);
/// A hidden name that no other process of any node takes.
std::string unused_name(std::string_view stem);
result<void> sync_folder(int folder, const std::string& shown);

/// Names in `folder`, without "." and "..", until `each` returns false.
result<void> for_each_name(int folder, const std::string& shown,
                           const std::function<bool(const char* name)>& each);

}  // namespace banyan::ckpt
