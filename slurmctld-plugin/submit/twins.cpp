// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/submit/twins.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "train/options.hpp"

namespace banyan::slurm {
namespace {

/// The last one where it stands there twice, as a shell has it.
std::optional<std::string_view> value_of(char** env, std::uint32_t size, std::string_view name) {
    std::optional<std::string_view> out;
    for (std::uint32_t i = 0; env && i < size; ++i) {
        const std::string_view entry = env[i] ? env[i] : "";  // a client may send nulls
        if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
            out = entry.substr(name.size() + 1);
    }
    return out;
}

/// And the null behind the last, as Slurm wants it.
void append(char**& env, std::uint32_t& size, const std::string& entry) {
    xrecalloc(env, size + 2, sizeof(char*));
    env[size++] = xstrdup(entry.c_str());
}

bool has_an_option(const job_desc_msg_t& job) {
    for (const auto& option : train::option_names)
        if (value_of(job.spank_job_env, job.spank_job_env_size, option.env)) return true;
    return false;
}

}  // namespace

result<void> take_twins(job_desc_msg_t& job) {
    if (has_an_option(job)) return {};
    for (std::size_t i = 0; i < train::option_count; ++i) {
        const auto& option = train::option_names[i];
        const auto value = value_of(job.environment, job.env_size, option.variable);
        if (!value || value->empty()) continue;
        if (const auto checked = train::check(static_cast<train::which>(i), *value); !checked)
            return fail(checked.error().code,
                        fmt::format("{}; the value stands in the job's environment variable {}",
                                    checked.error().what, option.variable),
                        checked.error().hint);
        const auto entry = fmt::format("{}={}", option.env, *value);
        append(job.spank_job_env, job.spank_job_env_size, entry);
        append(job.environment, job.env_size, "SLURM_SPANK_" + entry);
    }
    return {};
}

}  // namespace banyan::slurm
