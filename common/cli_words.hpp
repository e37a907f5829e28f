// SPDX-License-Identifier: BSD-3-Clause
//
// What all programs' command lines have in common: -V, values that a user understands in --help, and errors
// that begin with the program's name and say which word is wrong. Header alone: who includes it has CLI11.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/build_info.hpp"
#include "common/text.hpp"

namespace banyan {

/// "UINT:INT in [0 - 3600]" as "0..3600", "TEXT:{text,html}" as "text|html", "UINT" as "N".
inline std::string plain_value(std::string type) {
    const auto between = [&](const char* open, const char* close, auto change) {
        const auto from = type.find(open), to = type.find(close, from == std::string::npos ? 0 : from);
        if (from == std::string::npos || to == std::string::npos) return;
        const auto begin = type.rfind(' ', type.find(':')) + 1;  // of the word before, or of the text
        const auto inside =
            type.substr(from + std::string(open).size(), to - from - std::string(open).size());
        type.replace(begin, to + 1 - begin, change(inside));
    };
    between(" in [", "]", [](std::string bounds) {
        if (const auto dash = bounds.find(" - "); dash != std::string::npos) bounds.replace(dash, 3, "..");
        return bounds;
    });
    between(":{", "}", [](std::string choices) {
        for (auto& c : choices)
            if (c == ',') c = '|';
        return choices;
    });
    for (const char* word : {"UINT", "INT", "FLOAT"})
        if (const auto at = type.find(word); at != std::string::npos)
            type.replace(at, std::string(word).size(), "N");
    return type;
}

class plain_formatter : public CLI::Formatter {
  public:
    std::string make_option_opts(const CLI::Option* option) const override {
        return plain_value(CLI::Formatter::make_option_opts(option));
    }
};

/// What is wrong with a command line: the command that is not known rather than that one is required.
inline std::string what_is_wrong(const CLI::App& app, const CLI::Error& e) {
    const auto words = app.remaining(true);
    if (e.get_name() != "RequiredError" || words.empty()) return e.what();
    const auto& word = words.front();
    if (word.starts_with("-")) return fmt::format("there is no option \"{}\"", printable(word));
    std::vector<std::string> known;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
        known.push_back(command->get_name());
    const auto close = nearest(word, known);
    return fmt::format("there is no command \"{}\"{}", printable(word),
                       close.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", close));
}

/// To be called before anything is added to `app`: commands take it over from there.
inline void usual_words(CLI::App& app, const std::string& program) {
    app.name(program);
    app.formatter(std::make_shared<plain_formatter>());
    app.set_version_flag("-V,--version", version_line(program.c_str()), "print the version");
    app.failure_message([program](const CLI::App* failed, const CLI::Error& e) {
        return fmt::format("{}: {}; {} --help says how to call it\n", program, what_is_wrong(*failed, e),
                           program);
    });
}

}  // namespace banyan
