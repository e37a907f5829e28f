// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/finding.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"

namespace banyan::sweep {
namespace {

constexpr std::array<std::string_view, 4> verdict_words{"fit", "skipped", "unknown", "unfit"};
constexpr std::size_t most_sentences = 4096, longest_sentence = 16'384;

}  // namespace

finding fit(std::string what) { return {verdict::fit, {std::move(what)}}; }
finding unfit(std::string what) { return {verdict::unfit, {std::move(what)}}; }
finding unknown(const error& why) { return {verdict::unknown, {"could not look: " + why.text()}}; }

void add(finding& into, finding more) {
    if (more.is > into.is) std::swap(into, more);
    into.what.insert(into.what.end(), std::make_move_iterator(more.what.begin()),
                     std::make_move_iterator(more.what.end()));
    into.figures.merge(more.figures);
}

const char* word(verdict v) { return verdict_words.at(static_cast<std::size_t>(v)).data(); }

verdict overall(const report& r) {
    auto worst = verdict::fit;
    for (const auto& one : r) worst = std::max(worst, one.found.is);
    return worst;
}

int exit_code(const report& r) {
    const auto worst = overall(r);
    return worst == verdict::unfit ? 1 : worst == verdict::unknown ? 3 : 0;
}

nlohmann::json as_json(const finding& f) {
    return {{"verdict", word(f.is)}, {"what", f.what}, {"figures", f.figures}};
}

result<finding> finding_from(const nlohmann::json& j) {
    const json_fields fields(j);
    finding out;
    BANYAN_TRY(const auto is, fields.one_of("verdict", verdict_words));
    out.is = static_cast<verdict>(is);
    BANYAN_TRY(out.what, fields.texts("what", most_sentences, longest_sentence));
    if (const auto* figures = fields.find("figures"); figures && figures->is_object())
        for (const auto& [name, value] : figures->items())
            if (value.is_number()) out.figures[name] = value.get<double>();
    return out;
}

}  // namespace banyan::sweep
