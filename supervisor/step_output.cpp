// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/step_output.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::supervisor {
namespace {

// Between an exception and the end of its task lie the end of Python, with all that it does at exit, and of
// the process.
constexpr std::chrono::seconds apart{30};
// So Python ends after an exception. Another code is of somebody's choice, or a signal's by way of a shell.
constexpr std::uint64_t code_of_python = 1;
constexpr std::size_t line_end_kept = 4096, longest_line = 8 * line_end_kept;
constexpr std::size_t longest_type = 128, longest_text = 200, most_exceptions = 4096;
constexpr std::string_view digits = "0123456789";

std::string shortened(std::string_view text, std::size_t to) {
    return text.size() <= to ? std::string(text) : fmt::format("{}...", text.substr(0, to));
}

/// Takes `open`, digits and `close` from the front of `words`; the number, where they are there.
std::optional<std::uint64_t> take_number(std::string_view& words, std::string_view open,
                                         std::string_view close) {
    if (!words.starts_with(open)) return {};
    const auto end = std::min(words.find_first_not_of(digits, open.size()), words.size());
    const auto number = parse_number(words.substr(open.size(), end - open.size()));
    if (!number || !words.substr(end).starts_with(close)) return {};
    words.remove_prefix(end + close.size());
    return *number;
}

/// Takes what srun --label and torchrun --tee put before a line; both may count something else than ranks.
void take_labels(std::string_view& words) {
    auto rest = words.substr(std::min(words.find_first_not_of(' '), words.size()));
    if (take_number(rest, "", ": ")) words = rest;
    if (!words.starts_with('[') || words.starts_with("[rank")) return;
    const auto name = std::min(words.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1), words.size());
    rest = words.substr(name);
    if (name > 1 && take_number(rest, "", "]:")) words = rest.substr(rest.starts_with(' ') ? 1 : 0);
}

/// The type of the exception that a line names as Python does; empty where it is another line.
std::string_view type_in(std::string_view words) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (words.empty() || !is_letter(words.front())) return {};
    std::size_t end = 1;
    while (end < words.size() && end <= longest_type &&
           (is_letter(words[end]) || digits.find(words[end]) != digits.npos || words[end] == '.'))
        ++end;
    const auto type = words.substr(0, end);
    // "Error: " is how other programs begin a line.
    const bool is_named = (type.ends_with("Error") || type.ends_with("Exception")) && type != "Error";
    return is_named && (end == words.size() || words.substr(end).starts_with(':')) ? type
                                                                                   : std::string_view{};
}

}  // namespace

void step_output::take(std::string_view bytes, clock::time_point when) {
    when_ = when;
    while (!bytes.empty()) {
        const auto end = bytes.find('\n');
        const auto part = bytes.substr(0, end);
        bytes.remove_prefix(std::min(part.size() + 1, bytes.size()));
        if (line_.empty() && end != bytes.npos) {
            take_line(part);
            continue;
        }
        line_ += part;
        if (line_.size() > longest_line) line_.erase(line_end_kept, line_.size() - 2 * line_end_kept);
        if (end != bytes.npos) take_line(std::exchange(line_, {}));
    }
}

/// A progress bar begins the same line again and again.
void step_output::take_line(std::string_view line) {
    if (line.empty()) return;
    if (line.find('\r') == line.npos) return take_words(line);
    for (const auto words : split(line, '\r')) take_words(words);
}

void step_output::take_words(std::string_view words) {
    of_python(words);
    of_launcher(words);
    of_slurm(words);
}

/// "srun: error: n01: task 1: Exited with exit code 1", "srun: error: n[01-02]: tasks 2-3: Terminated",
/// "slurmstepd: error: *** STEP 5.0 ON n01 CANCELLED AT ... ***", "srun: error: Node failure on n02". The
/// words of a rank may stand before it in the same line.
void step_output::of_slurm(std::string_view words) {
    constexpr std::string_view error = "error: ";
    const auto at = words.rfind(error);
    if (at == words.npos) return;
    const auto told = words.substr(at + error.size());
    if (told.starts_with("*** STEP ") || told.starts_with("Node failure on ")) {
        told_to_end_ |= !first_;
        return;
    }
    if (!words.substr(0, at).ends_with("srun: ")) return;
    const auto nodes = told.substr(0, told.find(": task"));
    auto rest = told.substr(std::min(nodes.size() + 6, told.size()));
    rest.remove_prefix(rest.starts_with('s') ? 1 : 0);
    const auto colon = rest.find(": ");
    if (!rest.starts_with(' ') || colon == rest.npos || nodes.find(' ') != nodes.npos) return;
    const auto tasks = rest.substr(1, colon - 1);
    if (tasks.empty() || tasks.find_first_not_of("0123456789,-[]") != tasks.npos) return;
    auto how = rest.substr(colon + 2);
    if (first_) return;
    first_ = task_end{shortened(tasks, 60), shortened(nodes, 60), {}, how == "Out Of Memory", when_};
    const bool aborted = how.starts_with("Aborted");
    first_->code = take_number(how, "Exited with exit code ", "");
    aborted_ |= aborted;
    signalled_ |= !first_->code && !first_->out_of_memory && !aborted;
}

/// "  exitcode  : -9 (pid: 1)", of torchrun's summary.
void step_output::of_launcher(std::string_view words) {
    if (words.find("exitcode") == words.npos) return;
    take_labels(words);
    words = trim(words);
    if (!words.starts_with("exitcode")) return;
    words = trim(words.substr(std::string_view("exitcode").size()));
    if (first_ || !words.starts_with(": -")) return;
    if (words.starts_with(": -6 "))
        aborted_ = true;
    else if (!words.starts_with(": -15 "))  // SIGTERM is how the others are ended
        signalled_ = true;
}

void step_output::of_python(std::string_view words) {
    take_labels(words);
    const auto rank = take_number(words, "[rank", "]: ");
    // Python tells of an exception that it passed over, and of one in the writing of a log, with its
    // traceback.
    if (words.starts_with("Exception ignored in") || words.starts_with("--- Logging error ---"))
        ignored_ = true;
    if (words.starts_with("During handling of the above exception") ||
        words.starts_with("The above exception was the direct cause"))
        chained_ = true;
    const auto type = type_in(words);
    if (type.empty() || std::exchange(ignored_, false)) return;
    const auto text = trim(words.substr(std::min(type.size() + 1, words.size()), line_end_kept));
    add({rank, std::string(type), shortened(text, longest_text), blame_of(type, text), when_});
}

void step_output::add(exception raised) {
    if (raised.whose == blame::nobody || (first_ && when_ - first_->when > apart)) return;
    if (raised.whose == blame::device) device_ = when_;
    if (raised.whose == blame::peer && !raised.rank) peer_ = when_;
    const bool chained = std::exchange(chained_, false) && !exceptions_.empty();
    while (!first_ && !exceptions_.empty() && when_ - exceptions_.front().when > apart)
        exceptions_.pop_front();
    if (chained && !exceptions_.empty()) {
        // The last one ended the program. One of a device or a peer led to it all the same.
        auto& before = exceptions_.back();
        if (before.whose == blame::code || before.whose == blame::program) before = std::move(raised);
        return;
    }
    if (exceptions_.size() < most_exceptions) exceptions_.push_back(std::move(raised));
}

const step_output::exception* step_output::first_exception() {
    std::erase_if(exceptions_, [&](const auto& e) { return first_->when - e.when > apart; });
    const auto named = std::ranges::find_if(exceptions_, [](const auto& e) { return e.rank.has_value(); });
    if (named != exceptions_.end()) return &*named;
    return exceptions_.empty() ? nullptr : &exceptions_.front();
}

failure step_output::end() {
    take_line(std::exchange(line_, {}));
    if (!first_ || told_to_end_ || signalled_) return {};
    if (device_ && first_->when - *device_ <= apart) return {};
    const auto* first = first_exception();
    if (first_->out_of_memory) return {true, false, "Out Of Memory", words(first)};
    // Without the ranks' names an exception that was handled may stand before those of a lost peer.
    if (peer_ && first_->when - *peer_ <= apart && !(first && first->rank)) return {};
    if (first_->code && *first_->code != code_of_python) return {};
    if (!first || (first->whose != blame::code && first->whose != blame::program)) return {};
    // At the end of Python, after an exception that ended the program, torch's threads may abort the process.
    if (aborted_ && !first->rank) return {};
    return {true, first->whose == blame::code, first->type, words(first)};
}

std::string step_output::words(const exception* first) const {
    const bool several = first_->tasks.find_first_not_of(digits) != first_->tasks.npos;
    auto out = fmt::format("{}{} {} on {} {} the first, ", launchers_ ? "task" : "rank", several ? "s" : "",
                           first_->tasks, first_->nodes, several ? "were" : "was");
    if (first_->code)
        out += fmt::format("with exit code {}", *first_->code);
    else
        out += first_->out_of_memory ? "out of memory" : "by SIGABRT";
    if (!first) return out;
    out += first->rank ? fmt::format("; the first error, of rank {}, was ", *first->rank)
                       : "; the first error was ";
    return out + first->type + (first->text.empty() ? "" : ": " + first->text);
}

}  // namespace banyan::supervisor
