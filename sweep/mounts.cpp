// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/mounts.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/statvfs.h>

namespace banyan::sweep {

finding judge_mount(const std::string& point, const std::vector<mount_line>& mounted, int answer) {
    const auto path = without_end_slash(point);
    const auto* on_top = mounted_at(mounted, path);
    const auto why = std::generic_category().message(answer);
    if (answer == EACCES || answer == EPERM)
        return unknown({errc::denied, fmt::format("{}: {}", point, why), "run it as root"});
    if (!on_top) return unfit(point + " is not mounted");
    if (answer != 0) return unfit(fmt::format("{} is mounted ({}), and says: {}", point, on_top->type, why));
    if (on_top->type == "autofs")
        return unfit(point + " is not mounted: the automounter waits there, and has mounted nothing");
    return fit(fmt::format("{} is mounted ({})", point, on_top->type));
}

finding check_mount(const std::filesystem::path& root, const std::string& point) {
    struct statvfs st {};
    const int answer = ::statvfs(point.c_str(), &st) == 0 ? 0 : errno;  // has the automounter mount it, too
    const auto seen = look_at_mounts(root);
    if (!seen) return unknown(seen.error());
    if (is_hidden_here(*seen, without_end_slash(point)))
        return unknown({errc::denied, point + " is hidden from this process, which has mounts of its own",
                        "run it outside of the service's sandbox"});
    return judge_mount(point, seen->own, answer);
}

}  // namespace banyan::sweep
