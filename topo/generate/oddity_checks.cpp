// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a shape can have the oddities that are asked for.
#include <fmt/format.h>

#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

std::unexpected<error> unfit(std::string what) { return fail(errc::invalid_input, std::move(what)); }

result<void> check_additions(const options& o, std::uint32_t groups) {
    const auto& odd = o.odd;
    const bool beside = odd.storage.rails > 0 || odd.services.count > 0 || odd.services.hostless > 0 ||
                        odd.dpus > 0 || odd.less.groups > 0 || odd.less.older_leaves > 0;
    if (beside && o.planes > 1)
        return unfit("storage switches, service leaves, DPUs and lesser groups need --planes 1");
    if (odd.storage.rails > 2) return unfit("a host has two HCAs for storage at most");
    if (odd.storage.rails > 0 && (groups < 2 || o.storage_rail || o.rail_only))
        return unfit(
            "a storage switch of several leaf groups needs two of them, and no --storage-rail or "
            "--shape rail-only");
    if (odd.services.hcas == 0 || odd.services.hcas > 8) return unfit("a service host has 1 to 8 HCAs");
    const bool cores = odd.lost.cores > 0 ||
                       (odd.services.count > 0 && odd.services.up == service_leaves::way::second_cores);
    if (cores && o.levels < 3) return unfit("cores need --levels 3");
    if (odd.less.groups >= groups) return unfit("one leaf group at least is no lesser one");
    if (odd.less.hcas >= o.rails && odd.less.hcas > 0)
        return unfit(fmt::format("hosts of {} HCAs are not less than those of {}", odd.less.hcas, o.rails));
    if (odd.less.older_leaves >= groups * o.rails) return unfit("one leaf at least is no older switch");
    for (const auto& rate : {odd.storage.rate, odd.services.host_rate, odd.less.rate})
        if (!rate.empty()) BANYAN_CHECK(parse_rate(rate));
    return {};
}

result<void> check_ring(const options& o, std::uint32_t groups) {
    if (!o.odd.ring) return {};
    if (o.rails != 1 || o.planes != 1 || o.levels != 2 || o.dragonfly || o.rail_only || groups < 3)
        return unfit("a ring needs --shape rail, --rails 1, --levels 2, --planes 1 and three leaf groups");
    if (o.gateways + o.routers + o.odd.storage.rails + o.odd.services.count + o.odd.services.hostless > 0)
        return unfit("a ring has no spines for gateways, routers, storage and service leaves");
    if (o.odd.ring_links == 0 || o.odd.ring_links > 8) return unfit("a ring has 1 to 8 links of each two");
    return {};
}

}  // namespace

result<void> check_oddities(const options& o) {
    const auto& odd = o.odd;
    const auto groups = (o.hosts + o.group_size - 1) / o.group_size;
    BANYAN_CHECK(check_additions(o, groups));
    BANYAN_CHECK(check_ring(o, groups));
    if (odd.lost.chips + odd.lost.planes > 0 && o.planes < 2)
        return unfit("a lost plane needs --planes 2 or more");
    if (odd.lost.spines > 0 && o.planes > 1) return unfit("a lost spine needs --planes 1: else it is a box");
    if (!(odd.lost.lids >= 0 && odd.lost.lids <= 0.5))
        return unfit(fmt::format("{} of the hosts without LIDs, expected 0 to 0.5", odd.lost.lids));
    if ((odd.lids || odd.lost.lids > 0) && std::uint64_t{o.hosts} * o.rails > 16384)
        return unfit("with LIDs there are 16384 HCAs at most");
    const auto& format = odd.names.format;
    if (format.find("%h") == std::string::npos || format.find("%d") == std::string::npos)
        return unfit(fmt::format("the form of a description is \"{}\", expected %h and %d in it", format));
    if (o.mixed_names > 0 && (odd.names.devices != device_form::numbered || format != naming{}.format))
        return unfit("--mixed-names excludes kinds that rename devices");
    return {};
}

}  // namespace banyan::topo::generate
