// SPDX-License-Identifier: BSD-3-Clause
//
// A job's plan, its summary, its shape, and the line in its AdminComment.
#include "test/fuzz/fuzz_input.hpp"
#include "train/admin_comment_reader.hpp"
#include "train/plan.hpp"
#include "train/plan_summary.hpp"

using namespace banyan::topo;
using namespace banyan::train;
using banyan::fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = banyan::fuzz::as_text(data, size);
    if (const auto p = parse_plan(text)) {
        must(p->nodes.size() <= max_plan_nodes && p->buddies.size() <= max_plan_nodes);
        must(parse_plan(to_text(*p)).has_value());
    }
    if (const auto s = parse_shape(text)) {
        must(s->ranks() >= 1 && s->ranks() <= max_ranks);
        must(parse_shape(s->text()).has_value());
    }
    if (const auto s = parse_summary(text)) must(s->nodes >= 1 && s->ranks() <= max_ranks);
    (void)read_admin_comment(text);
    return 0;
}
