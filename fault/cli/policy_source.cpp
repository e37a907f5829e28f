// SPDX-License-Identifier: BSD-3-Clause
#include "fault/cli/policy_source.hpp"

#include "fault/config.hpp"

namespace banyan::fault {

result<policy_text> find_policy(const policy_call& call) {
    policy_text out;
    out.path = call.policy;
    if (out.path.empty()) {
        const auto settings = load_config(call.config, {});
        if (!settings) return fail(errc::invalid_input, settings.error().what, settings.error().hint);
        out.path = settings->policy;
    }
    if (out.path.empty()) {
        out.source = shipped_policy_name;
        out.text = shipped_policy_text();
        return out;
    }
    out.source = out.path == "-" ? "standard input" : out.path;
    auto text = read_policy_text(out.path);
    if (!text) return fail(errc::not_found, text.error().what, text.error().hint);
    out.text = std::move(*text);
    return out;
}

result<policy> right_policy(const policy_text& from) {
    auto read = parse_policy(from.source, from.text);
    if (read.rules) return std::move(*read.rules);
    return fail(errc::invalid_input, read.problems.front().text(from.source),
                "banyan-fault policy check tells all that is wrong");
}

}  // namespace banyan::fault
