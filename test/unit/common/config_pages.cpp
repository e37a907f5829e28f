// SPDX-License-Identifier: BSD-3-Clause
#include "config_pages.hpp"

#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/config_keys.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::test {
namespace {

constexpr std::size_t comment_width = 140;

constexpr std::string_view sample_head = R"(# SPDX-License-Identifier: BSD-3-Clause
#
# banyan.conf: the configuration, /etc/banyan/banyan.conf on every node (or $BANYAN_CONF, or --config FILE). What stands in
# /etc/banyan/banyan.conf.d/*.conf, which are read after it in the order of their names, wins: a site's own settings go there.
# Every key stands here as a comment with its default. A key that is not known is an error, not ignored.
# Durations: "500ms", "30s", "10m", "168h". Sizes: "512M", "64G". In a path %n stands for the node's name.
# `banyan-faultd controller --dump-config` and `banyan-ckptd --dump-config` print what is in force.
)";

std::string comment(std::string_view text) {
    std::string out, line = "#";
    for (const auto word : split(text, ' ')) {
        if (line.size() + 1 + word.size() > comment_width) out += std::exchange(line, "#") + "\n";
        line += fmt::format(" {}", word);
    }
    return out + line + "\n";
}

/// With which a key's text begins in the manual page.
std::string type_words(const config_key& key) {
    switch (key.type) {
        case config_type::text:
            return "String.";
        case config_type::node_text:
            return "String, in which %n stands for the node's name.";
        case config_type::path:
            return "Path.";
        case config_type::choice:
            return fmt::format("One of \"{}\".", fmt::join(split(key.choices, ' '), "\", \""));
        case config_type::number:
            return fmt::format("Whole number, {} to {}.", key.min, key.max);
        case config_type::flag:
            return "true or false.";
        case config_type::duration:
            return "Duration.";
        case config_type::size:
            return "Size.";
        case config_type::list:
            return key.min > 0 ? "List of strings, at least one." : "List of strings.";
    }
    return {};
}

/// The sample says once, in its head, what a path and a duration look like.
std::string sample_words(const config_key& key) {
    return key.type == config_type::choice ? fmt::format("{} {}", type_words(key), key.about)
                                           : std::string(key.about);
}

std::string escaped(std::string text) {
    text = std::regex_replace(text, std::regex(R"(\\)"), "\\e");
    text = std::regex_replace(text, std::regex("\""), "\\(dq");
    return std::regex_replace(text, std::regex("-"), "\\-");
}

/// Sentences as troff: a line each, references to pages in bold.
std::string troff(std::string_view sentences) {
    auto text = escaped(std::string(sentences));
    text = std::regex_replace(text, std::regex(R"(\. )"), ".\n");
    // "(name(8))," keeps its brackets and its comma in one macro.
    text = std::regex_replace(text, std::regex(R"(\s?(\(?)([\w\\.-]+)\((\d)\)([),.;]*)[ \n]?)"),
                              "\n.RB $1 $2 ($3)$4\n");
    text = std::regex_replace(text, std::regex(R"(\.RB  (\S+) )"), ".BR $1 ");
    text = std::regex_replace(text, std::regex(R"(\n\n+)"), "\n");
    return text.ends_with('\n') ? text : text + "\n";
}

std::string tables_in_troff() {
    std::string out;
    for (const auto& table : config_tables()) {
        out += fmt::format(".SS [{}]\n{}", table.name, troff(table.readers));
        for (const auto& key : config_keys())
            if (key.table == table.name)
                out +=
                    fmt::format(".TP\n.BR {} \" = {}\"\n{}\n{}", key.name, escaped(std::string(key.fallback)),
                                escaped(type_words(key)), troff(key.about));
    }
    return out;
}

}  // namespace

std::string sample_config() {
    std::string out(sample_head);
    for (const auto& table : config_tables()) {
        out += fmt::format("\n[{}]\n", table.name);
        for (const auto& key : config_keys())
            if (key.table == table.name)
                out += fmt::format("{}#{} = {}\n", comment(sample_words(key)), key.name, key.fallback);
    }
    return out;
}

std::string config_manual(const std::string& root) {
    const auto page = read_file(root + "/docs/man/banyan.conf.5", 1 << 20).value();
    const std::string begin = "Each key is shown with its default.\n", end = ".SH EXAMPLES\n";
    const auto from = page.find(begin) + begin.size(), to = page.find(end);
    return page.substr(0, from) + tables_in_troff() + page.substr(to);
}

}  // namespace banyan::test
