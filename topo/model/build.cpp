// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/build.hpp"

#include <fmt/format.h>

namespace banyan::topo {

fabric build_fabric(const dump& d, const build_options& options) {
    fabric out;
    out.source_crc = d.crc;
    out.created_unix_s = options.created_unix_s;
    build::state s{d, options, out, {}, {}, {}, {}};
    build::take_nodes(s);
    build::take_links(s);
    build::name_hosts(s);
    build::find_levels(s);
    build::group_leaves(s);
    build::find_defects(s);
    for (const auto& c : d.complaints)
        out.defects.push_back(
            {"unreadable", {fmt::format("line {} column {}", c.line, c.column)}, c.what, 1.0});
    return out;
}

}  // namespace banyan::topo
