// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/hosts.hpp"

#include <algorithm>
#include <map>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/names.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

/// HCAs of one host. A name that more have is an image's, and names none of the hosts that were made of it.
constexpr std::size_t most_of_host = 256;

/// HCAs by the host that their name tells, the others as unattributed; aggregation nodes, storage devices and
/// what has no LID go.
host_list list_by_name(state& s) {
    const auto storage = s.options.site.storage_devices.value_or(std::vector<std::string>());
    host_list out;
    boost::unordered_flat_map<std::string_view, std::uint32_t> known;
    std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>> found;
    s.host_name_of_hca.resize(s.out.hcas.size());
    s.doubtful_host.resize(s.out.hcas.size());
    for (std::uint32_t i = 0; i < s.out.hcas.size(); ++i) {
        auto& hca = s.out.hcas[i];
        const auto& name = s.hca_names[i];
        if (name.kind == hca_name::trust::aggregation) {
            exclude(s, i, "sharp", "an aggregation node inside a switch");
            if (hca.leaf != none) s.out.switches[hca.leaf].sharp = true;
        } else if (s.without_lid[i]) {
            exclude(s, i, "no-lid",
                    "the subnet manager has given its port no LID: nothing can be sent to it");
        } else if (!storage.empty() &&
                   std::find(storage.begin(), storage.end(), name.device_name) != storage.end()) {
            exclude(s, i, "storage", "the site file names its device");
        } else if (name.kind == hca_name::trust::factory || name.kind == hca_name::trust::generic) {
            out.unattributed.push_back(i);
        } else {
            s.host_name_of_hca[i] = name.host;
            const auto [at, fresh] = known.try_emplace(name.host, static_cast<std::uint32_t>(found.size()));
            if (fresh) found.emplace_back(name.host, std::vector<std::uint32_t>{});
            found[at->second].second.push_back(i);
        }
    }
    number_devices(s);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return before_by_number(a.first, b.first); });
    for (auto& [name, hcas] : found) {
        if (hcas.size() > most_of_host) {
            for (const auto i : hcas) s.host_name_of_hca[i] = {};
            out.unattributed.insert(out.unattributed.end(), hcas.begin(), hcas.end());
            continue;
        }
        out.names.push_back(name);
        out.hcas.push_back(std::move(hcas));
    }
    return out;
}

void report_unattributed(state& s, const host_list& hosts, const grouping& g) {
    // HCAs on one port of the leaves of one group are one host, whatever it is called.
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::size_t> together;
    const auto attachment = [&](const hca& h) {
        return std::pair(h.leaf == none ? none : g.group_of_leaf[h.leaf], h.leaf_port);
    };
    for (const auto i : hosts.unattributed)
        if (const auto at = attachment(s.out.hcas[i]); at.first != none) ++together[at];
    for (const auto i : hosts.unattributed) {
        const auto& h = s.out.hcas[i];
        const auto of_group = together.find(attachment(h));
        const auto others = of_group == together.end() ? 0 : of_group->second - 1;
        const auto why = h.leaf == none ? std::string("it has no link")
                         : others > 0
                             ? fmt::format(
                                   "on port {} of its leaf, as {} others of the same leaf group: a host "
                                   "without a name",
                                   h.leaf_port, others)
                             : fmt::format("nothing shows which host it belongs to");
        exclude(s, i, "unattributed", why);
        if (s.host_name_of_hca[i].empty() && !s.counts_only("factory-name"))
            s.report("factory-name", {hex(h.id)}, fmt::format("\"{}\" names no host; {}", h.name, why), 1.0);
    }
}

}  // namespace

void exclude(state& s, std::uint32_t hca, std::string_view kind, std::string why) {
    s.out.excluded.push_back({s.out.hcas[hca].id, s.out.hcas[hca].name, std::string(kind), std::move(why)});
}

void take_hosts(state& s) {
    auto hosts = list_by_name(s);
    attribute_by_system(s, hosts);
    set_services_aside(s, hosts);
    agree_on_numbers(s, hosts);
    set_storage_rails_aside(s, hosts);
    const auto groups = group_hosts(s.out, hosts.hcas, hosts.unattributed);
    settle_doubled_names(s, hosts, groups);
    attribute_by_step(s, hosts, groups);
    attribute_by_port(s, hosts, groups);
    attribute_by_neighbours(s, hosts, groups);
    report_unattributed(s, hosts, groups);
    s.out.hosts.reserve(hosts.names.size());
    for (std::size_t i = 0; i < hosts.names.size(); ++i) {
        const auto index = static_cast<std::uint32_t>(s.out.hosts.size());
        for (const auto h : hosts.hcas[i]) s.out.hcas[h].host = index;
        host h;
        h.name = hosts.names[i];
        h.hcas = std::move(hosts.hcas[i]);
        s.out.hosts.push_back(std::move(h));
    }
}

}  // namespace banyan::topo::build
