// SPDX-License-Identifier: BSD-3-Clause
//
// A task that srun --container starts. Slurm 22.05 writes what the container gets, config.json in the task's
// working directory, before it asks any plugin: what a plugin sets for the task would not come into it.
#include "spank/container.hpp"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/file.hpp"

namespace banyan::spank {
namespace {

using nlohmann::json;

constexpr auto config = "config.json";
constexpr std::size_t max_config = 4u << 20;

// What Slurm puts in place of the program, which is no other step's: a working directory of a user's own may
// have a config.json, too.
bool is_container(spank_t sp) {
    int count = 0;
    char** words = nullptr;
    return spank_get_item(sp, S_JOB_ARGV, &count, &words) == ESPANK_SUCCESS && count >= 0 && words &&
           words[0] && words[1] && words[2] &&
           std::string_view(words[2]).find("never execute with a container") != std::string_view::npos;
}

bool is_of(const json& entry, const std::string& name) {
    const auto* text = entry.get_ptr<const std::string*>();
    return text && text->starts_with(name + "=");
}

}  // namespace

result<void> tell_container(spank_t sp, const std::vector<task_variable>& variables) {
    if (!is_container(sp)) return {};
    BANYAN_TRY(const auto text, read_file(config, max_config));
    auto spec = json::parse(text, nullptr, false);
    if (!spec.is_object() || !spec["process"].is_object() || !spec["process"]["env"].is_array())
        return fail(errc::invalid_input, "the container's config.json has no list of variables");
    auto& all = spec["process"]["env"];
    for (const auto& v : variables) {
        const auto known = [&](const json& entry) { return is_of(entry, v.name); };
        if (v.replaces)
            all.erase(std::remove_if(all.begin(), all.end(), known), all.end());
        else if (std::any_of(all.begin(), all.end(), known))
            continue;
        all.push_back(v.name + "=" + v.value);
    }
    return write_file_atomic(config, spec.dump(-1, ' ', false, json::error_handler_t::replace), 0750);
}

}  // namespace banyan::spank
