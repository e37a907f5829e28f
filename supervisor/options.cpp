// SPDX-License-Identifier: BSD-3-Clause
//
// CLI11 reads our options and writes the help. It is shown only the words before the first that is none of
// ours: its own prefix_command() ends at the first word that is no option, so it would take a later one too.
// No name is one of srun's: who writes that means srun.
#include "supervisor/options.hpp"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/build_info.hpp"
#include "common/text.hpp"

namespace banyan::supervisor {
namespace {

class formatter : public CLI::Formatter {
  public:
    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: banyan-run [OPTION]... [SRUN OPTION]... PROGRAM [ARGUMENT]...\n";
    }
};

std::uint32_t count_of(const std::string& text, const char* name) {
    const auto n = parse_number(text, 1'000'000);
    if (!n) throw CLI::ValidationError(name, fmt::format("\"{}\" is not a number from 0 to 1000000", text));
    return static_cast<std::uint32_t>(*n);
}

std::chrono::milliseconds time_of(const std::string& text, const char* name) {
    const auto time = parse_duration(text);
    if (!time) throw CLI::ValidationError(name, time.error().text());
    return *time;
}

class command_line {
  public:
    explicit command_line(options& into)
        : app_(
              "Run a job step with srun, and start it again after a fault.\n"
              "Options of banyan-run come first; everything from the first other word on goes to srun.") {
        app_.name("banyan-run");
        app_.formatter(std::make_shared<formatter>());
        app_.set_version_flag("-V,--version", version_line("banyan-run"), "print the version");
        add("--max-restarts", "N", "end after N restarts (default 1000)",
            [&into](const std::string& text) { into.max_restarts = count_of(text, "--max-restarts"); });
        add("--max-idle-restarts", "N",
            "end after N restarts in a row without a new training step saved,\n"
            "restarts after the loss of a node not counted (default 3)",
            [&into](const std::string& text) {
                into.max_idle_restarts = count_of(text, "--max-idle-restarts");
            });
        add("--wait-for-slurmctld", "TIME", "how long to wait for slurmctld to answer (default 30s)",
            [&into](const std::string& text) { into.wait = time_of(text, "--wait-for-slurmctld"); });
        add("--start-within", "TIME",
            "how long to ask Slurm for the step of a restart, before the job is\n"
            "requeued (default 60s)",
            [&into](const std::string& text) { into.start_within = time_of(text, "--start-within"); });
        app_.add_flag("--debug", into.debug, "print each srun command line, and what Slurm answers");
        app_.footer(
            "Within a job submitted with --train-parallel, -N and -n follow from the job's plan.\n"
            "A job that has lost more nodes than it has spares is requeued, if it may be.\n"
            "A step that was cancelled (scancel, SIGTERM, Ctrl-C) is not started again.");
    }

    /// How many of the first words are our options, with their values.
    std::size_t own(const std::vector<std::string>& words) const {
        std::size_t count = 0;
        while (count < words.size() && words[count].starts_with("-")) {
            const auto equals = words[count].find('=');
            const auto* option = app_.get_option_no_throw(words[count].substr(0, equals));
            const bool has_value = equals != std::string::npos;
            const bool takes_value = option && option->get_items_expected_max() > 0;
            if (!option || (has_value && !takes_value)) break;
            count += takes_value && !has_value ? 2 : 1;
        }
        return std::min(count, words.size());
    }

    /// Throws as CLI11 does.
    void parse(std::vector<std::string> words) {
        std::reverse(words.begin(), words.end());  // as CLI11 wants them
        app_.parse(std::move(words));
    }

    std::string help() const { return app_.help(); }

  private:
    void add(const char* name, const char* value, const char* about,
             const std::function<void(const std::string&)>& take) {
        app_.add_option_function(name, take, about)
            ->type_name(value)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }

    CLI::App app_;
};

}  // namespace

std::string help_text() {
    options unused;
    return command_line(unused).help();
}

bool goes_on_without_a_node(const std::vector<std::string>& srun) {
    bool out = false;
    bool may_be_value = false;  // the word before is an option that may take this one
    for (const std::string_view word : srun) {
        if (word == "--") break;
        if (!word.starts_with("-")) {
            if (!may_be_value) break;  // the program
            may_be_value = false;
            continue;
        }
        const auto equals = word.starts_with("--") ? word.find('=') : word.npos;
        may_be_value = equals == word.npos;
        const auto name = word.substr(0, equals);
        std::string_view value;
        if (name.starts_with("--no-k") && std::string_view("--no-kill").starts_with(name))
            value = equals == word.npos ? "" : word.substr(equals + 1);
        else if (word.starts_with("-k"))
            value = word.substr(2);
        else if (!word.starts_with("--") && word.find('k', 2) != word.npos)
            value = "";  // options of one letter in one word, or a value that has it
        else
            continue;
        out = value != "off" && value != "no";
        may_be_value = false;  // of this option it stands in the same word
    }
    return out;
}

result<options> split_arguments(const std::vector<std::string>& words) {
    options out;
    command_line line(out);
    const auto begin = words.begin(), border = begin + static_cast<std::ptrdiff_t>(line.own(words));
    out.srun.assign(border, words.end());
    try {
        line.parse({begin, border});
    } catch (const CLI::CallForHelp&) {
        out.help = true;
    } catch (const CLI::CallForVersion&) {
        out.version = true;
    } catch (const CLI::ParseError& e) {
        return fail(errc::invalid_input, e.what(), "banyan-run --help tells how to call it");
    }
    if (out.srun.empty() && !out.help && !out.version)
        return fail(errc::invalid_input, "no program given", "banyan-run --help tells how to call it");
    return out;
}

}  // namespace banyan::supervisor
