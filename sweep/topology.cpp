// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/topology.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/text.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t most_told = 16;

std::string described(const machine_part& p) { return p.bytes > 0 ? format_bytes(p.bytes) : p.is; }

bool same(const machine_part& a, const machine_part& b) {
    const auto [less, more] = std::minmax(a.bytes, b.bytes);
    return a.is == b.is && more - less <= more / 50;
}

}  // namespace

finding judge_topology(const machine_parts& baseline, const machine_parts& here) {
    std::vector<std::string> wrong;
    std::vector<std::string> more;
    for (const auto& [name, part] : baseline) {
        const auto it = here.find(name);
        const auto what = described(part);
        if (it == here.end())
            wrong.push_back(fmt::format("{} is missing{}{}", name, what.empty() ? "" : ": ", what));
        else if (!same(part, it->second))
            wrong.push_back(fmt::format("{} is {}, expected {}", name, described(it->second), what));
    }
    for (const auto& [name, part] : here)
        if (!baseline.contains(name)) more.push_back(name);
    finding out;
    out.figures["topology_differences"] = static_cast<double>(wrong.size());
    if (wrong.empty()) {
        out.what.push_back(fmt::format("all {} objects of the baseline node are here", baseline.size()));
    } else {
        out.is = verdict::unfit;
        const auto told = std::min(wrong.size(), most_told);
        out.what.assign(wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(told));
        if (wrong.size() > told)
            out.what.push_back(fmt::format("and {} more differences", wrong.size() - told));
    }
    if (!more.empty())
        out.what.push_back(
            fmt::format("{} here, which the baseline node does not have: {}{}",
                        more.size() == 1 ? "1 object is" : fmt::format("{} objects are", more.size()),
                        more.front(), more.size() > 1 ? ", ..." : ""));
    return out;
}

finding check_topology(const std::string& baseline) {
    const auto xml = hardware::read_small(baseline, max_topology_bytes);
    if (!xml) return unknown(xml.error());
    const auto wanted = read_topology(*xml, baseline);
    if (!wanted) return unknown(wanted.error());
    const auto here = look_at_machine();
    return here ? judge_topology(*wanted, *here) : unknown(here.error());
}

}  // namespace banyan::sweep
