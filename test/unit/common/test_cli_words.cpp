// SPDX-License-Identifier: BSD-3-Clause
#include <sstream>

#include <catch2/catch.hpp>

#include "common/cli_words.hpp"

namespace test_cli_words {

using namespace banyan;

namespace {

/// What a program with the commands show and shape says to `words`.
std::string answer(std::vector<std::string> words) {
    CLI::App app("a program");
    usual_words(app, "banyan-x");
    app.require_subcommand(1);
    unsigned number = 0;
    std::string choice;
    auto* show = app.add_subcommand("show", "shows");
    show->add_option("--wait", number, "so many seconds")->check(CLI::Range(0, 3600));
    show->add_option("--as", choice, "how")->check(CLI::IsMember({"text", "html"}));
    app.add_subcommand("shape", "forms");
    std::reverse(words.begin(), words.end());
    std::ostringstream out, err;
    try {
        app.parse(words);
    } catch (const CLI::ParseError& e) {
        app.exit(e, out, err);
    }
    return out.str() + err.str();
}

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a command that is not known is named, behind the program", "[common]") {
    CHECK(answer({"shwo"}).starts_with("banyan-x: there is no command \"shwo\" (did you mean \"show\"?); "));
    CHECK(
        answer({"frobnicate"}).starts_with("banyan-x: there is no command \"frobnicate\"; banyan-x --help"));
    CHECK(answer({"--nosuch"}).starts_with("banyan-x: there is no option \"--nosuch\""));
    CHECK(answer({}).starts_with("banyan-x: "));
    CHECK(answer({"show", "--nosuch"}).starts_with("banyan-x: "));
}

TEST_CASE("help shows values as a user writes them", "[common]") {
    const auto text = answer({"show", "--help"});
    CHECK(has(text, "--wait 0..3600"));
    CHECK(has(text, "--as text|html"));
    CHECK_FALSE(has(text, "UINT"));
    CHECK(has(answer({"-V"}), "banyan-x"));
}

}  // namespace test_cli_words
