// SPDX-License-Identifier: BSD-3-Clause
#include "topo/cli/running_job.hpp"

#include <algorithm>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/cli/output_of.hpp"
#include "train/admin_comment_reader.hpp"

namespace banyan::topo::cli {
namespace {

/// The value of " key=" in scontrol's one line, up to `end`.
std::string field(const std::string& line, const std::string& key, const std::string& end) {
    const auto at = line.find(" " + key + "=");
    if (at == std::string::npos) return {};
    const auto start = at + key.size() + 2;
    return line.substr(start, line.find(end, start) - start);
}

/// By our line in AdminComment, which an operator may have changed; it is shown again, and nothing is decided
/// by it. scontrol prints no plan (docs/decisions/009).
result<train::plan> placed_plan(const fabric& f, const running_job& job,
                                const std::vector<std::string>& nodes, const std::string& comment) {
    const auto summary = train::read_admin_comment(comment);
    if (!summary)
        return fail(
            errc::not_found, fmt::format("job {} was not placed by banyan", job.id),
            "its AdminComment would begin with \"banyan:\"; where Slurm's own plugin chose the nodes, "
            "say --shape, as its --train-parallel");
    BANYAN_TRY(const auto dims, parse_shape(summary->shape));
    BANYAN_TRY(auto r, make_request(dims, summary->nodes, 0, 0));
    r.model = summary->model;
    std::vector<std::uint32_t> hosts;
    for (const auto& name : nodes) {
        if (std::ranges::find(summary->spares, name) != summary->spares.end()) continue;
        const auto host = find_host(f, name);
        if (host == none) return fail(errc::not_found, fmt::format("{} is not on the fabric", name));
        hosts.push_back(host);
    }
    BANYAN_TRY(const auto placed, arrange(f, hosts, r));
    train::plan out;
    out.model = summary->model;
    out.later = summary->later;
    out.shape = summary->shape;
    out.ranks_per_node = r.ranks_per_node;
    for (const auto h : placed.nodes) out.nodes.push_back(f.hosts[h].name);
    out.spares = summary->spares;
    return out;
}

/// As plan_without_select has it at the start of a job: the first nodes have the ranks.
result<train::plan> plan_in_slurms_order(const running_job& job, std::vector<std::string> nodes) {
    BANYAN_TRY(const auto dims, parse_shape(job.shape));
    BANYAN_TRY(const auto r, make_request(dims, static_cast<std::uint32_t>(nodes.size()), 0, job.spares));
    train::plan out;
    out.shape = dims.text();
    out.ranks_per_node = r.ranks_per_node;
    out.spares.assign(nodes.begin() + r.nodes, nodes.end());
    nodes.resize(r.nodes);
    out.nodes = std::move(nodes);
    return out;
}

}  // namespace

result<train::plan> plan_of(const fabric& f, const running_job& job) {
    BANYAN_TRY(const auto text,
               output_of({job.program, "-o", "show", "job", job.id}, std::chrono::seconds(30), 1 << 24,
                         "slurm-client", "does the job exist? see scontrol show job"));
    const auto list = field(text, "NodeList", " ");
    if (list.empty() || list == "(null)")
        return fail(errc::not_found, fmt::format("job {} has no nodes now", job.id),
                    "ask again when it runs");
    BANYAN_TRY(auto nodes, expand_hostlist(list));
    if (!job.shape.empty()) return plan_in_slurms_order(job, std::move(nodes));
    return placed_plan(f, job, nodes, field(text, "AdminComment", "\n"));
}

}  // namespace banyan::topo::cli
