// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/drain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t longest_reason = 200;

/// At most `bytes`, and no character cut in two.
std::string shortened(std::string text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    auto end = bytes - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end) + "...";
}

bool is_ours(const fault::node_status& node) { return node.reason.starts_with(sweep_reason_prefix); }

decision for_unfit(const fault::node_status& node, const report& r) {
    using enum decision::step;
    if (node.planned) return {nothing, {}, "Slurm restarts the node, or switches it off or on: left alone"};
    if (node.drained || node.down)
        return {nothing,
                {},
                fmt::format("the node is {} already: {}", node.down ? "down" : "drained",
                            printable(node.reason))};
    auto reason = reason_for(r);
    auto told = "drained: " + reason;
    return {drain, std::move(reason), std::move(told)};
}

decision for_fit(const fault::node_status& node, bool all_looked_at) {
    using enum decision::step;
    if (!node.drained) return {nothing, {}, "the node is not drained: nothing to do"};
    if (!is_ours(node))
        return {nothing,
                {},
                fmt::format("stays drained, which the sweep did not do: {}", printable(node.reason))};
    if (node.down || node.planned) return {nothing, {}, "stays drained: the node is down"};
    if (!all_looked_at)
        return {
            nothing, {}, "stays drained: it returns when every check of [sweep] was looked at and is fit"};
    return {resume, {}, "returned: " + printable(node.reason)};
}

}  // namespace

std::string reason_for(const report& r) {
    const auto it = std::ranges::find(r, verdict::unfit, [](const checked& c) { return c.found.is; });
    if (it == r.end()) return {};
    const auto what = it->found.what.empty() ? std::string("unfit") : printable(it->found.what.front());
    return shortened(fmt::format("{} {}: {}", sweep_reason_prefix, it->check, what), longest_reason);
}

decision decide(const fault::node_status& node, const report& r, bool whole) {
    const auto worst = overall(r);
    if (worst == verdict::unfit) return for_unfit(node, r);
    return for_fit(node, whole && !r.empty() && worst == verdict::fit);
}

result<std::string> settle(fault::cluster& slurm, const std::string& node, const report& r, bool whole) {
    BANYAN_TRY(const auto status, slurm.node(node));
    auto d = decide(status, r, whole);
    if (d.what == decision::step::drain) BANYAN_CHECK(slurm.set_drain(node, d.reason));
    if (d.what == decision::step::resume) BANYAN_CHECK(slurm.resume(node));
    return std::move(d.told);
}

}  // namespace banyan::sweep
