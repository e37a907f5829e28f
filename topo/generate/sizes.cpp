// SPDX-License-Identifier: BSD-3-Clause
//
// From what was asked for to counts of switches and ports, with every option checked.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

constexpr std::uint64_t most_hcas = 1'000'000;

std::unexpected<error> bad(std::string what, std::string hint = {}) {
    return fail(errc::invalid_input, std::move(what), std::move(hint));
}

std::uint32_t ceiling(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>((a + b - 1) / b);
}

/// The smallest divisor of `n` that is at least `least`, or n: so that links spread evenly.
std::uint32_t divisor_from(std::uint32_t n, std::uint32_t least) {
    for (std::uint32_t d = std::max(1u, least); d < n; ++d)
        if (n % d == 0) return d;
    return n;
}

result<void> check_range(const char* option, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    if (value < low || value > high)
        return bad(fmt::format("{} is {}, expected {} to {}", option, value, low, high));
    return {};
}

result<void> check_name(const char* option, const std::string& text) {
    const auto fine = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_';
    };
    if (text.empty() || text.size() > 32 || !std::all_of(text.begin(), text.end(), fine))
        return bad(fmt::format("{} is \"{}\", expected 1 to 32 letters, digits, dots, dashes", option, text));
    return {};
}

result<void> check_counts(const options& o) {
    BANYAN_CHECK(check_range("--nodes", o.hosts, 1, 60000));
    BANYAN_CHECK(check_range("--group-size", o.group_size, 1, 254));
    BANYAN_CHECK(check_range("--rails", o.rails, 1, 16));
    BANYAN_CHECK(check_range("--levels", o.levels, 2, 3));
    BANYAN_CHECK(check_range("--spine-group-size", o.spine_group_size, 1, 64));
    BANYAN_CHECK(check_range("--radix", o.radix, 4, 256));
    BANYAN_CHECK(check_range("--spines", o.spines, 0, 1024));
    BANYAN_CHECK(check_range("--links", o.links, 0, 32));
    BANYAN_CHECK(check_range("--planes", o.planes, 1, 8));
    BANYAN_CHECK(check_range("--ufm-hosts", o.ufm_hosts, 0, 64));
    BANYAN_CHECK(check_range("--storage-servers", o.storage_servers, 0, 512));
    BANYAN_CHECK(check_range("--host-digits", o.host_digits, 0, 8));
    BANYAN_CHECK(check_range("--rack-size", o.rack_size, 0, 1000));
    BANYAN_CHECK(check_range("--gateways", o.gateways, 0, 512));
    BANYAN_CHECK(check_range("--core-hosts", o.core_hosts, 0, 512));
    if (!(o.racks_off >= 0 && o.racks_off <= 0.5))
        return bad(fmt::format("--racks-off is {}, expected 0 to 0.5", o.racks_off));
    if (o.core_hosts > 0 && o.levels < 3) return bad("--core-hosts needs --levels 3");
    BANYAN_CHECK(check_range("--routers", o.routers, 0, 512));
    BANYAN_CHECK(check_range("--global-links", o.global_links, 0, 256));
    if (!(o.mixed_names >= 0 && o.mixed_names <= 1))
        return bad(fmt::format("--mixed-names is {}, expected 0 to 1", o.mixed_names));
    if (o.global_links > 0 && !o.dragonfly) return bad("--global-links needs --shape dragonfly");
    if ((o.dragonfly || o.rail_only) && o.levels != 2)
        return bad("--shape dragonfly and --shape rail-only have --levels 2");
    if (o.rail_only && (o.storage_rail || o.storage_servers > 0))
        return bad("--shape rail-only has no leaves that storage could share");
    if (o.directors && o.planes > 1)
        return bad("--directors excludes --planes: a card's ASICs are no planes");
    BANYAN_CHECK(check_name("--host-prefix", o.host_prefix));
    BANYAN_CHECK(check_name("--sm-host", o.sm_host));
    if (!(o.oversubscription >= 1 && o.oversubscription <= 16))
        return bad(fmt::format("--oversubscription is {}, expected 1 to 16", o.oversubscription));
    if (std::uint64_t{o.hosts} * o.rails * o.planes > most_hcas)
        return bad(fmt::format("{} hosts x {} rails x {} planes are more than {} HCA ports", o.hosts, o.rails,
                               o.planes, most_hcas),
                   "ask for fewer hosts");
    for (const auto rate : o.rates)
        if (!(rate >= 0 && rate <= 0.5))
            return bad(fmt::format("a defect rate is {}, expected 0 to 0.5", rate));
    return {};
}

result<void> size_cores(const options& o, sizes& n, std::uint32_t uplinks) {
    if (o.cores % n.spines != 0)
        return bad(fmt::format("--cores is {}, expected a multiple of a spine group's {} spines", o.cores,
                               n.spines));
    n.core_fan = o.cores / n.spines;
    // No more spine groups' links on a core than it has ports, if that can be had.
    if (n.core_fan == 0)
        n.core_fan = divisor_from(uplinks, ceiling(std::uint64_t{n.spine_groups} * uplinks, o.radix));
    n.core_links = std::max(1u, uplinks / n.core_fan);
    return {};
}

}  // namespace

const std::vector<std::string>& speed_names() {
    static const std::vector<std::string> names{"SDR", "DDR", "QDR", "FDR10", "FDR",
                                                "EDR", "HDR", "NDR", "XDR"};
    return names;
}

result<speed_rate> parse_rate(const std::string& text) {
    const auto x = text.find('x');
    const auto width = parse_number(std::string_view(text).substr(0, x), 12);
    const auto& names = speed_names();
    const auto at =
        x == std::string::npos ? names.end() : std::find(names.begin(), names.end(), text.substr(x + 1));
    const bool known = width && (*width == 1 || *width == 2 || *width == 4 || *width == 8 || *width == 12);
    if (!known || at == names.end())
        return bad(fmt::format("--rate is \"{}\", expected a width and a speed such as 4xHDR or 1xXDR", text),
                   "widths are 1, 2, 4, 8, 12; speeds are SDR to XDR");
    return speed_rate{static_cast<std::uint16_t>(*width), static_cast<std::uint8_t>(at - names.begin())};
}

std::string to_text(const speed_rate& r) { return fmt::format("{}x{}", r.width, speed_names()[r.speed]); }

speed_rate generation_before(speed_rate r) {
    const auto& names = speed_names();
    if (r.speed > 0) --r.speed;
    // FDR10 is no generation of its own.
    if (names[r.speed] == "FDR10") --r.speed;
    return r;
}

result<sizes> sizes_of(const options& o) {
    BANYAN_CHECK(check_counts(o));
    BANYAN_CHECK(check_oddities(o));
    sizes n;
    BANYAN_TRY(n.rate, parse_rate(o.rate));
    n.groups = ceiling(o.hosts, o.group_size);
    const bool several = o.levels == 3 || o.dragonfly;
    n.groups_of_spine_group = several ? std::min(o.spine_group_size, n.groups) : n.groups;
    n.spine_groups = o.rail_only ? o.rails : ceiling(n.groups, n.groups_of_spine_group);
    if (o.storage_rail || o.storage_servers > 0)
        n.storage_leaves =
            ceiling(std::uint64_t{n.groups_of_spine_group} * o.group_size + o.storage_servers, o.group_size);
    if (o.storage_servers > 0 && !o.storage_rail) n.storage_leaves = ceiling(o.storage_servers, o.group_size);
    const auto leaves = n.groups_of_spine_group * (o.rail_only ? 1 : o.rails) + n.storage_leaves;
    const auto uplinks =
        std::max(1u, static_cast<std::uint32_t>(std::ceil(o.group_size / o.oversubscription)));
    const auto room = several ? o.radix / 2 : o.radix;
    n.spines = o.spines > 0 ? o.spines
               : o.links > 0
                   ? ceiling(uplinks, o.links)
                   : divisor_from(uplinks, std::max(2u, ceiling(std::uint64_t{leaves} * uplinks, room)));
    if (o.odd.ring) n.spines = 0;
    n.links = o.links > 0 ? o.links : std::max(1u, uplinks / std::max(1u, n.spines));
    n.uplink_first = std::max(o.group_size, o.radix / 2) + 1;
    n.down_ports = leaves * n.links;
    n.global_links = o.global_links > 0 ? o.global_links : n.spines;
    if (o.levels == 3)
        BANYAN_CHECK(size_cores(o, n, n.down_ports));
    else if (o.cores > 0)
        return bad("--cores needs --levels 3");
    const auto most = std::max({n.uplink_first + n.spines * n.links, 2 * n.down_ports + o.radix,
                                n.spine_groups * std::max(1u, n.core_links)});
    if (most > 40000)
        return bad(fmt::format("a switch would need {} ports", most),
                   "more --levels, fewer --links or --nodes");
    return n;
}

}  // namespace banyan::topo::generate
