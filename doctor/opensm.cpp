// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/opensm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "doctor/processes.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_opensm_text = 4u << 20;
constexpr const char* usual_configuration = "/etc/opensm/opensm.conf";

/// The value of an option: "-fFILE", "-f FILE", "--log_file FILE" or "--log_file=FILE".
std::optional<std::string> option(const std::vector<std::string>& words, std::string_view letter,
                                  std::string_view name) {
    std::optional<std::string> out;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == letter || word == name) {
            if (i + 1 < words.size()) out = words[i + 1];
        } else if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
            out = word.substr(name.size() + 1);
        } else if (word.starts_with(letter) && !word.starts_with("--") && word.size() > letter.size()) {
            out = word.substr(letter.size());
        }
    }
    return out;
}

std::string configured(std::string_view configuration, std::string_view key) {
    std::string out;
    for (const auto line : split(configuration, '\n')) {
        const auto text = trim(line);
        if (!text.starts_with(key) || text.size() == key.size()) continue;
        if (const char next = text[key.size()]; next != ' ' && next != '\t') continue;
        const auto value = trim(text.substr(key.size()));
        out = value.substr(0, value.find_first_of(" \t"));  // opensm takes the first word
    }
    return out == "(null)" ? std::string() : out;
}

}  // namespace

std::string opensm_configuration(const std::vector<std::string>& command) {
    return option(command, "-F", "--config").value_or(usual_configuration);
}

opensm_log_settings judge_opensm(const std::vector<std::string>& command, std::string_view configuration) {
    opensm_log_settings out;
    const auto debug = option(command, "-d", "--debug");
    const bool all = std::find(command.begin(), command.end(), "-V") != command.end();
    // To opensm everything but TRUE, in capitals, is false.
    out.flushes = (debug && *debug == "2") || all || configured(configuration, "force_log_flush") == "TRUE";
    out.log = option(command, "-f", "--log_file").value_or(configured(configuration, "log_file"));
    return out;
}

result<std::optional<opensm_log_settings>> opensm_that_logs_to(const std::string& log) {
    std::optional<opensm_log_settings> any;
    BANYAN_TRY(const auto managers, root_processes_called("opensm"));
    for (const auto& manager : managers) {
        const auto configuration = read_file(opensm_configuration(manager.words), most_opensm_text);
        if (!configuration && configuration.error().code != errc::not_found)
            return std::unexpected(configuration.error());
        auto settings = judge_opensm(manager.words, configuration ? *configuration : std::string());
        if (settings.log == log) return settings;
        any = std::move(settings);
    }
    return any;
}

}  // namespace banyan::doctor
