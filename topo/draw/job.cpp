// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/job.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace banyan::topo::draw {
namespace {

/// "0-7", "0-3,8-11"; a long list ends in "...".
std::string ranges(const std::vector<std::uint32_t>& ranks) {
    std::string out;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        if (out.size() > 40) return out + ",...";
        out += fmt::format("{}{}", out.empty() ? "" : ",", ranks[i]);
        if (last > i) out += fmt::format("-{}", ranks[last]);
        i = last + 1;
    }
    return out;
}

std::string about(const shape& dims, std::uint32_t slot, const std::vector<std::uint32_t>& ranks) {
    auto out =
        fmt::format("slot {}: {} {}, first at", slot, ranks.size() == 1 ? "rank" : "ranks", ranges(ranks));
    const auto at = dims.coordinates(ranks.front());
    for (const auto& e : dims.order) out += fmt::format(" {}{}", name_of(e.dim), at[e.dim]);
    return out;
}

}  // namespace

result<job> job_of(const fabric& f, const request& r, std::span<const std::uint32_t> nodes,
                   std::span<const std::uint32_t> spares, const std::string& color_by) {
    const auto units = units_of_slots(r);
    const auto ranks = ranks_of_slots(r);
    if (units.size() != nodes.size() || ranks.size() != nodes.size())
        return fail(errc::internal, "slots and nodes differ");
    const auto dim = std::find_if(all_dimensions.begin(), all_dimensions.end(),
                                  [&](auto d) { return name_of(d) == color_by; });
    if (dim == all_dimensions.end() && color_by != "unit")
        return fail(errc::invalid_input, fmt::format("hosts cannot be coloured by '{}'", color_by),
                    "use unit, tp, cp, ep, pp or dp");
    job out;
    std::size_t absent = 0;
    for (std::uint32_t slot = 0; slot < nodes.size(); ++slot) {
        const auto color =
            dim == all_dimensions.end() ? units[slot] : r.dims.coordinates(ranks[slot].front())[*dim];
        while (out.colors.size() <= color) {
            const auto n = out.colors.size();
            out.colors.push_back(dim != all_dimensions.end()
                                     ? fmt::format("{} {}", color_by, n)
                                     : fmt::format("pipeline unit {}", static_cast<char>('A' + n % 26)));
        }
        if (nodes[slot] >= f.hosts.size()) {
            ++absent;
            continue;
        }
        out.marks.push_back({nodes[slot], slot, color, false,
                             fmt::format("{}{}", static_cast<char>('A' + units[slot] % 26), slot),
                             about(r.dims, slot, ranks[slot])});
    }
    for (const auto host : spares) {
        if (host < f.hosts.size())
            out.marks.push_back({host, none, 0, true, "spare", "spare"});
        else
            ++absent;
    }
    out.text = fmt::format("Job {}: {} on {}, {}", r.dims.text(), counted(r.dims.ranks(), "rank"),
                           counted(nodes.size(), "host"), counted(spares.size(), "spare"));
    if (absent) out.text += fmt::format("; {} not on the fabric", counted(absent, "host"));
    return out;
}

result<job> job_of(const fabric& f, const request& r, std::span<const std::string> nodes,
                   std::span<const std::string> spares, const std::string& color_by) {
    const auto found = [&](std::span<const std::string> names) {
        std::vector<std::uint32_t> hosts;
        for (const auto& name : names) hosts.push_back(find_host(f, name));
        return hosts;
    };
    return job_of(f, r, found(nodes), found(spares), color_by);
}

job job_of(const fabric& f, std::span<const std::uint32_t> hosts) {
    job out;
    for (const auto h : hosts)
        if (h < f.hosts.size()) out.marks.push_back({h, none, 0, false, "job", "host of the job"});
    out.text = "Job: " + counted(out.marks.size(), "host");
    return out;
}

}  // namespace banyan::topo::draw
