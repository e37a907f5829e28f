// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/build.hpp"

#include <banyan/topo/capacity.hpp>
#include <fmt/format.h>

namespace banyan::topo {
namespace build {

std::string hex(guid id) { return fmt::format("0x{:016x}", id); }

std::string port_id(guid id, std::uint16_t port) { return fmt::format("{} port {}", hex(id), port); }

std::string port_id(const fabric& f, const port_ref& p) {
    return port_id(p.kind == node_kind::hca ? f.hcas[p.index].id : f.switches[p.index].id, p.port);
}

std::string label(const state& s, std::uint32_t sw) { return s.names.label(s.out, sw); }

std::string end_name(const state& s, const port_ref& p) {
    return fmt::format("{} port {}", p.kind == node_kind::hca ? s.out.hcas[p.index].name : label(s, p.index),
                       p.port);
}

std::string name_pattern(std::string_view name) {
    std::string out;
    for (const char c : name)
        if (c < '0' || c > '9')
            out += c;
        else if (out.empty() || out.back() != '#')
            out += '#';
    return out;
}

namespace {

/// A cable that the source does not tell is not missing.
void find_defects(state& s) {
    if (s.source.untold.cables) return;
    find_host_defects(s);
    find_switch_defects(s);
    find_idle_leaves(s);
    find_slow_links(s);
    find_missing_planes(s);
    find_bad_lids(s);
}

}  // namespace
}  // namespace build

fabric build_fabric(const dump& d, const build_options& options) {
    fabric out;
    out.source_crc = d.crc;
    out.untold = d.untold;
    out.created_unix_s = options.created_unix_s;
    build::state s{d, options, out, {}, 0, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    build::take_nodes(s);
    build::take_links(s);
    build::find_boxes(s);
    build::find_levels(s);
    build::take_hosts(s);
    build::group_leaves(s);
    build::take_site(s);
    out.tier_cost = tier_costs(out);
    mark_slow_hosts(out);
    build::find_defects(s);
    for (const auto& c : d.complaints)
        s.report("unreadable", {fmt::format("line {} column {}", c.line, c.column)}, c.what, 1.0);
    build::tell_once(s);
    return out;
}

}  // namespace banyan::topo
