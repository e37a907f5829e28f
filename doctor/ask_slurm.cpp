// SPDX-License-Identifier: BSD-3-Clause
#include "common/command.hpp"
#include "common/text.hpp"
#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {
namespace {

constexpr auto slurm_timeout = std::chrono::seconds(20);
constexpr std::size_t most_bytes = 256u << 20;

result<std::string> ask(std::vector<std::string> words) {
    words.insert(words.begin(), "scontrol");
    return run_command(words, slurm_timeout, most_bytes);
}

/// "slurm-wlm 22.05.8"
std::optional<std::uint32_t> installed_release() {
    const auto text = ask({"--version"});
    if (!text) return {};
    const auto words = trim(*text);
    return parse_version(words.substr(words.find_last_of(" \t") + 1));
}

}  // namespace

slurm_view ask_slurm() {
    slurm_view out;
    out.installed = installed_release();
    if (const auto path = find_slurm_conf()) {
        auto file = read_slurm_conf(*path);
        if (file)
            out.file = std::make_shared<slurm_file>(std::move(*file));
        else
            out.file_error = file.error();
    }
    const auto config = ask({"show", "config"});
    if (config && !parse_config(*config).empty()) {
        out.config = parse_config(*config);
        const auto nodes = ask({"-o", "show", "node"});
        if (nodes)
            out.nodes = parse_nodes(*nodes);
        else
            out.nodes = std::unexpected(nodes.error());
        return out;
    }
    const auto why =
        config ? error{errc::unavailable, "scontrol show config prints nothing", {}} : config.error();
    if (out.file) {
        out.silence = why;
        out.config = out.file->config;
        out.nodes = out.file->nodes;
    } else {
        out.config = std::unexpected(why);
        out.nodes = std::unexpected(why);
    }
    return out;
}

}  // namespace banyan::doctor
