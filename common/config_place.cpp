// SPDX-License-Identifier: BSD-3-Clause
//
// Where the configuration is, and the look at all of it.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "common/config.hpp"
#include "common/config_keys.hpp"

namespace banyan {

result<std::vector<std::filesystem::path>> config_parts(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> out;
    if (path.empty()) return out;
    const auto folder = path.string() + ".d";
    std::error_code why;
    for (std::filesystem::directory_iterator at(folder, why), end; !why && at != end; at.increment(why))
        if (at->path().extension() == ".conf" && !at->path().filename().string().starts_with('.'))
            out.push_back(at->path());
    if (why && why != std::errc::no_such_file_or_directory && why != std::errc::not_a_directory)
        return fail(errc::unavailable, fmt::format("cannot read {}: {}", folder, why.message()));
    std::ranges::sort(out);
    std::error_code ignored;
    if (out.empty() || std::filesystem::exists(path, ignored)) out.insert(out.begin(), path);
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
    const auto parts = config_parts(standard);
    const bool some = !parts || parts->front() != standard || std::filesystem::exists(standard, ignored);
    return some ? standard : std::filesystem::path{};
}

}  // namespace banyan
