// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/print.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "common/utf8.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t table_width = 100, indent = 22;

std::size_t characters(std::string_view text) {
    std::size_t count = 0;
    for (; !text.empty(); ++count) text.remove_prefix(first_character(text).bytes);
    return count;
}

/// The first `width` characters of `text`, which go from there.
std::string cut(std::string_view& text, std::size_t width) {
    std::size_t bytes = 0;
    for (std::size_t n = 0; n < width && bytes < text.size(); ++n)
        bytes += first_character(text.substr(bytes)).bytes;
    std::string out(text.substr(0, bytes));
    text.remove_prefix(bytes);
    return out;
}

/// Lines of at most `width` characters, broken at blanks where there are some.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> out;
    std::string line;
    for (auto word : split(text, ' ')) {
        if (!line.empty() && characters(line) + 1 + characters(word) > width)
            out.push_back(std::exchange(line, {}));
        while (characters(word) > width) out.push_back(cut(word, width));
        line += fmt::format("{}{}", line.empty() ? "" : " ", word);
    }
    out.push_back(line);
    return out;
}

const char* heading(verdict v) {
    return v == verdict::unfit ? "UNFIT" : v == verdict::unknown ? "?" : word(v);
}

std::string lines_of(std::string_view name, std::string_view mark, const std::vector<std::string>& what) {
    std::string out, head = fmt::format("  {:<11}{:<9}", name, mark);
    for (const auto& sentence : what)
        for (const auto& line : wrapped(printable(sentence), table_width - indent)) {
            const auto text = fmt::format("{:<22}{}", head, line);
            out += fmt::format("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
            head.clear();
        }
    return out;
}

const char* in_words(verdict worst) {
    if (worst == verdict::unfit) return "unfit";
    return worst == verdict::unknown ? "not known to be fit" : "fit";
}

}  // namespace

std::string as_table(const report& r, const told& t) {
    std::string out = fmt::format("{} is {}\n", printable(t.node), in_words(overall(r)));
    for (const auto& one : r) out += lines_of(one.check, heading(one.found.is), one.found.what);
    if (!t.slurm.empty()) out += lines_of("Slurm", t.slurm_failed ? "FAILED" : "", {t.slurm});
    return out;
}

std::string as_json_text(const report& r, const told& t) {
    nlohmann::json checks = nlohmann::json::array();
    for (const auto& one : r) {
        auto j = as_json(one.found);
        j["check"] = one.check;
        checks.push_back(std::move(j));
    }
    nlohmann::json out = {{"node", t.node},
                          {"verdict", word(overall(r))},
                          {"seconds", t.seconds},
                          {"checks", std::move(checks)}};
    if (!t.slurm.empty()) out["slurm"] = {{"failed", t.slurm_failed}, {"told", t.slurm}};
    return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string as_metrics(const report& r, std::int64_t now) {
    std::string out =
        "# HELP banyan_sweep_check What the newest sweep found: 1 for the verdict of each check.\n"
        "# TYPE banyan_sweep_check gauge\n";
    for (const auto& one : r)
        for (const auto v : {verdict::fit, verdict::skipped, verdict::unknown, verdict::unfit})
            out += fmt::format("banyan_sweep_check{{check=\"{}\",verdict=\"{}\"}} {}\n", one.check, word(v),
                               one.found.is == v ? 1 : 0);
    for (const auto& one : r)
        for (const auto& [name, value] : one.found.figures)
            out += fmt::format("# TYPE banyan_sweep_{0} gauge\nbanyan_sweep_{0} {1}\n", name, value);
    out += fmt::format(
        "# HELP banyan_sweep_timestamp_seconds When the newest sweep ended.\n"
        "# TYPE banyan_sweep_timestamp_seconds gauge\nbanyan_sweep_timestamp_seconds {}\n",
        now);
    return out;
}

}  // namespace banyan::sweep
