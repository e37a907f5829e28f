// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/slurm.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::doctor {
namespace {

// A field of a one-line record. Slurm prints the ones that users can write (Comment, Reason) after ours, so
// the first counts.
std::string field(std::string_view line, std::string_view key) {
    for (std::size_t at = 0; (at = line.find(key, at)) != std::string_view::npos; at += key.size()) {
        if (at > 0 && line[at - 1] != ' ') continue;
        const auto value = line.substr(at + key.size());
        return std::string(value.substr(0, value.find(' ')));
    }
    return {};
}

}  // namespace

std::string lower_case(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

slurm_config parse_config(std::string_view text) {
    slurm_config out;
    for (const auto line : split(text, '\n')) {
        const auto equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        auto value = trim(line.substr(equals + 1));
        if (value == "(null)") value = {};
        out.emplace(trim(line.substr(0, equals)), value);
    }
    return out;
}

std::vector<slurm_node> parse_nodes(std::string_view text) {
    std::vector<slurm_node> out;
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with("NodeName=")) continue;
        out.push_back({field(line, "NodeName="), field(line, "NodeAddr="), field(line, "NodeHostName="),
                       parse_number(field(line, "RealMemory=")).value_or(0),
                       parse_number(field(line, "MemSpecLimit=")).value_or(0), field(line, "State=")});
    }
    return out;
}

bool slurm_node::expected_up() const {
    const auto says = lower_case(state);
    const auto has = [&](const char* word) { return says.find(word) != std::string::npos; };
    // "DOWN", "IDLE+CLOUD+POWERED_DOWN", "IDLE*" of a node that does not respond.
    return !has("down") && !has("power") && !has("future") && !has("reboot_issued") && !has("not_respond") &&
           !has("*");
}

std::vector<slurm_node> expected(const std::vector<slurm_node>& nodes) {
    std::vector<slurm_node> out;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(out),
                 [](const slurm_node& n) { return n.expected_up(); });
    return out;
}

std::string some(const std::vector<std::string>& names) {
    constexpr std::size_t most = 256;
    if (names.size() <= most) return compress_hostlist(names);
    return fmt::format("{} and {} more", names.front(), names.size() - 1);
}

std::string value_of(const slurm_config& config, std::string_view key) {
    const auto at = config.find(key);
    return at == config.end() ? std::string() : at->second;
}

bool has_word(const slurm_config& config, std::string_view key, std::string_view word) {
    const auto value = value_of(config, key);
    const auto words = split(value, ',');
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view w) { return lower_case(trim(w)) == lower_case(word); });
}

bool is_without_select(const slurm_config& config) {
    const auto type = value_of(config, "SelectType");
    return type.starts_with("select/") && type != "select/cons_tres_banyan" &&
           !has_word(config, "JobSubmitPlugins", "banyan");
}

std::vector<std::string> controllers(const slurm_config& config) {
    std::vector<std::string> out;
    for (auto at = config.lower_bound("SlurmctldHost["); at != config.end(); ++at) {
        if (!at->first.starts_with("SlurmctldHost[")) break;
        out.push_back(at->second.substr(0, at->second.find('(')));
    }
    return out;
}

std::optional<std::uint32_t> parse_version(std::string_view text) {
    const auto parts = split(trim(text), '.');
    if (parts.size() < 3) return {};
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        auto digits = parts[i];
        if (i == 2) digits = digits.substr(0, digits.find_first_not_of("0123456789"));
        const auto n = parse_number(digits, 255);
        if (!n) return {};
        out = out << 8 | static_cast<std::uint32_t>(*n);
    }
    return out;
}

std::string version_text(std::uint32_t number) {
    return fmt::format("{}.{:02}.{}", number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff);
}

std::optional<std::filesystem::path> find_plugin(const slurm_config& config, const std::string& name) {
    const auto folders = value_of(config, "PluginDir");
    std::error_code ignored;
    for (const auto folder : split(folders, ':')) {
        if (folder.empty()) continue;
        auto file = std::filesystem::path(folder) / name;
        if (std::filesystem::exists(file, ignored)) return file;
    }
    return {};
}

}  // namespace banyan::doctor
