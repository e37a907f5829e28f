// SPDX-License-Identifier: BSD-3-Clause
//
// Where the configuration is, and the look at all of it.
#include <algorithm>
#include <cstdlib>

#include "common/config.hpp"
#include "common/config_keys.hpp"

namespace banyan {

std::vector<std::filesystem::path> config_parts(const std::filesystem::path& path) {
    if (path.empty()) return {};
    std::vector<std::filesystem::path> out;
    std::error_code none_there;
    for (const auto& entry : std::filesystem::directory_iterator(path.string() + ".d", none_there))
        if (entry.path().extension() == ".conf") out.push_back(entry.path());
    std::ranges::sort(out);
    out.insert(out.begin(), path);
    return out;
}

result<std::vector<std::string>> check_config(const std::filesystem::path& path) {
    BANYAN_TRY(const auto file, config_file::load(path));
    for (const auto& table : config_tables()) BANYAN_CHECK(file.section(table.name).check());
    std::vector<std::string> notes;
    const auto sweep = file.section("sweep");
    std::uint32_t gpus = 0, allreduce = 0;
    sweep.field("gpus", gpus);
    sweep.field("allreduce", allreduce);
    if (gpus == 1 && allreduce > 0)
        notes.emplace_back(
            "[sweep] allreduce is left out where gpus = 1: an all-reduce of one GPU is no check");
    return notes;
}

std::filesystem::path default_config_path() {
    if (const char* named = std::getenv("BANYAN_CONF"); named && *named) return named;
    return installed_config_path();
}

std::filesystem::path installed_config_path() {
    const std::filesystem::path standard = "/etc/banyan/banyan.conf";
    std::error_code ignored;
    return std::filesystem::exists(standard, ignored) ? standard : std::filesystem::path{};
}

}  // namespace banyan
