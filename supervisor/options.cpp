// SPDX-License-Identifier: BSD-3-Clause
//
// Splitting the command line. By hand: a library would reorder or reject what is meant for srun.
#include "supervisor/options.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::supervisor {

const char* const help_text =
    "Usage: banyan-run [OPTION]... [SRUN OPTION]... PROGRAM [ARGUMENT]...\n"
    "Run a job step with srun, and start it again after a fault.\n"
    "\n"
    "Options of banyan-run come first; everything from the first other word on goes to srun.\n"
    "  --max-restarts N       end after N restarts (default 1000)\n"
    "  --max-idle-restarts N  end after N restarts in a row without a new training step saved,\n"
    "                         restarts after the loss of a node not counted (default 3)\n"
    "  --wait TIME            how long to wait for a node when the job cannot be requeued, or for\n"
    "                         slurmctld to answer (default 30s)\n"
    "  --verbose              say what is run and asked\n"
    "  --help                 print this text\n"
    "  --version              print the version\n"
    "\n"
    "Within a job submitted with --train-parallel, -N and -n follow from the job's plan.\n"
    "A job that has lost more nodes than it has spares is requeued, if it may be.\n"
    "A step that was cancelled (scancel, SIGTERM, Ctrl-C) is not started again.\n";

namespace {

/// "--name=value" or "--name value" at `i`; moves `i` past it.
result<std::string> value_of(const std::vector<std::string>& words, std::size_t& i, const std::string& name) {
    if (words[i].size() > name.size()) return words[i++].substr(name.size() + 1);
    if (i + 1 >= words.size()) return fail(errc::invalid_input, fmt::format("{} needs a value", name));
    i += 2;
    return words[i - 1];
}

result<std::uint32_t> count_of(const std::string& text, const std::string& name) {
    const auto n = parse_number(text, 1'000'000);
    if (!n)
        return fail(errc::invalid_input,
                    fmt::format("{} \"{}\" is not a number from 0 to 1000000", name, text));
    return static_cast<std::uint32_t>(*n);
}

}  // namespace

result<options> split_arguments(const std::vector<std::string>& words) {
    options out;
    std::size_t i = 0;
    const auto is = [&](const std::string& name) {
        return words[i] == name || words[i].starts_with(name + "=");
    };
    while (i < words.size()) {
        if (is("--max-restarts")) {
            BANYAN_TRY(const auto text, value_of(words, i, "--max-restarts"));
            BANYAN_TRY(out.max_restarts, count_of(text, "--max-restarts"));
        } else if (is("--max-idle-restarts")) {
            BANYAN_TRY(const auto text, value_of(words, i, "--max-idle-restarts"));
            BANYAN_TRY(out.max_idle_restarts, count_of(text, "--max-idle-restarts"));
        } else if (is("--wait")) {
            BANYAN_TRY(const auto text, value_of(words, i, "--wait"));
            const auto wait = parse_duration(text);
            if (!wait) return fail(errc::invalid_input, fmt::format("--wait: {}", wait.error().text()));
            out.wait = *wait;
        } else if (words[i] == "--verbose") {
            out.verbose = true;
            ++i;
        } else if (words[i] == "--help" || words[i] == "-h") {
            out.help = true;
            ++i;
        } else if (words[i] == "--version") {
            out.version = true;
            ++i;
        } else {
            break;
        }
    }
    out.srun.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    if (out.srun.empty() && !out.help && !out.version)
        return fail(errc::invalid_input, "no program given", "banyan-run --help tells how to call it");
    return out;
}

}  // namespace banyan::supervisor
