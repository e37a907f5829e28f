// SPDX-License-Identifier: BSD-3-Clause
//
// A policy that somebody wrote: read, reviewed and asked, or refused with a place and words that fit a
// terminal.
#include "common/text.hpp"
#include "fault/policy/review.hpp"
#include "fault/policy/samples.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::fault;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto samples = samples_for(shipped_policy());
    const auto read = parse_policy("policy", fuzz::as_text(data, size));
    must(read.rules.has_value() == read.problems.empty());
    for (const auto& p : read.problems) must(p.line > 0 && p.column > 0 && is_printable(p.text("policy")));
    if (!read.rules) return 0;
    must(!read.rules->rules().empty());
    for (const auto& s : samples) {
        const auto d = read.rules->decide(s.what);
        must(d.step <= step_kind::node_out && is_printable(d.why) &&
             (has_a_node(s.what) || d.step <= step_kind::alert || d.step == step_kind::avoid));
    }
    if (read.rules->rules().size() > 20) return 0;
    const auto all = review(*read.rules);
    must(all.decides.size() == read.rules->rules().size());
    for (const auto& p : all.warnings) must(p.warning && is_printable(p.text("policy")));
    for (const auto& r : read.rules->rules()) must(!conditions_of(r).empty());
    return 0;
}
