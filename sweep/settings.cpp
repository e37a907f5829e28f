// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/settings.hpp"

#include <fmt/format.h>

#include "common/config.hpp"

namespace banyan::sweep {
namespace {

/// A process is started for each, and two descriptors are open for it.
constexpr std::size_t most_folders = 128;

result<void> check_folders(const char* key, const std::vector<std::string>& folders) {
    if (folders.size() > most_folders)
        return fail(errc::invalid_input, fmt::format("[sweep] {} has {} folders, expected {} at most", key,
                                                     folders.size(), most_folders));
    for (const auto& folder : folders)
        if (!folder.starts_with('/') || folder.find('\0') != std::string::npos)
            return fail(errc::invalid_input,
                        fmt::format("[sweep] {}: \"{}\" is no path that begins with /", key, folder));
    return {};
}

}  // namespace

result<settings> load_settings(const std::filesystem::path& path, const std::string& node) {
    BANYAN_TRY(const auto file, config_file::load(path));
    const auto section = file.section("sweep", node);
    BANYAN_CHECK(section.check());
    settings s;
    section.field("links", s.links);
    section.field("link_rate", s.link_rate);
    section.field("gpus", s.gpus);
    section.field("gpu_ecc", s.gpu_ecc);
    section.field("topology", s.topology);
    section.field("mounts", s.mounts);
    section.field("disks", s.disks);
    section.field("disk_fill", s.disk_fill);
    section.field("disk_inodes", s.disk_inodes);
    section.field("clock", s.clock);
    section.field("memory", s.memory);
    section.field("bandwidth", s.bandwidth);
    section.field("pcie", s.pcie);
    section.field("allreduce", s.allreduce);
    section.field("baseline", s.baseline);
    section.field("baseline_percent", s.baseline_percent);
    BANYAN_CHECK(check_folders("mounts", s.mounts));
    BANYAN_CHECK(check_folders("disks", s.disks));
    return s;
}

}  // namespace banyan::sweep
