// SPDX-License-Identifier: BSD-3-Clause
//
// Each link against those of its own kind: host links by the name pattern of their hosts, links between
// switches by their levels, in a network without compute hosts among themselves; and of the same chips at its
// ends, since an older one may do no more. Capacity is width times speed, so "1xXDR" beside its like is no
// narrow link.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/switch_graph.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

/// Network, place, and both chips.
using kind_key = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint16_t>;

struct kind_of_link {
    std::vector<std::uint16_t> widths, speeds;
};

class kinds {
  public:
    explicit kinds(const state& s)
        : s_(s), f_(s.out), pattern_of_host_(f_.hosts.size()), network_(connected_switches(f_)) {
        std::map<std::string, std::uint32_t> known;
        for (std::size_t h = 0; h < f_.hosts.size(); ++h)
            pattern_of_host_[h] =
                known.try_emplace(name_pattern(f_.hosts[h].name), static_cast<std::uint32_t>(known.size()))
                    .first->second;
        std::vector<bool> computes(network_.size());
        for (const auto& h : f_.hcas)
            if (h.host != none && h.leaf != none) computes[network_[h.leaf]] = true;
        for (auto& network : network_)
            if (computes[network]) network = none;
    }
    /// Nothing for links of what placement leaves out.
    std::optional<kind_key> operator()(const link& l) const {
        const auto which = place(l);
        if (which == none) return {};
        auto a = chip(l.a), b = chip(l.b);
        if (a == 0 || b == 0) a = b = 0;
        const auto& sw = l.a.kind == node_kind::switch_node ? l.a : l.b;
        const auto network = sw.kind == node_kind::switch_node ? network_[sw.index] : none;
        return kind_key{network, which, std::min(a, b), std::max(a, b)};
    }

  private:
    std::uint16_t chip(const port_ref& p) const {
        return p.kind == node_kind::hca ? s_.chip_of_hca[p.index] : f_.switches[p.index].device;
    }
    std::uint32_t place(const link& l) const {
        constexpr std::uint32_t switches = 1u << 31;
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) {
            const std::uint32_t a = f_.switches[l.a.index].level, b = f_.switches[l.b.index].level;
            return switches | std::min(a, b) << 8 | std::max(a, b);
        }
        const auto host = f_.hcas[(l.a.kind == node_kind::hca ? l.a : l.b).index].host;
        return host == none ? none : pattern_of_host_[host];
    }

    const state& s_;
    const fabric& f_;
    std::vector<std::uint32_t> pattern_of_host_;
    std::vector<std::uint32_t> network_;  ///< by switch; none where hosts compute
};

}  // namespace

void find_slow_links(state& s) {
    const kinds kind(s);
    std::map<kind_key, kind_of_link> all;
    for (const auto& l : s.out.links)
        if (const auto k = kind(l)) {
            auto& of_kind = all[*k];
            if (l.rate.width != 0) of_kind.widths.push_back(l.rate.width);
            if (l.rate.lane_gbps10 != 0) of_kind.speeds.push_back(l.rate.lane_gbps10);
        }
    std::map<kind_key, link_rate> usual_rate;
    for (auto& [k, of_kind] : all)
        usual_rate[k] = {usual(std::move(of_kind.widths)).value, usual(std::move(of_kind.speeds)).value};
    for (const auto& l : s.out.links) {
        const auto k = kind(l);
        if (!k) continue;
        const auto& expected = usual_rate[*k];
        const bool narrow =
            l.rate.width != 0 && l.rate.width < expected.width && !s.counts_only("narrow-link");
        const bool slow = l.rate.lane_gbps10 != 0 && l.rate.lane_gbps10 < expected.lane_gbps10 &&
                          !s.counts_only("slow-link");
        if (!narrow && !slow) continue;
        const std::vector<std::string> ends{end_name(s, l.a), end_name(s, l.b)};
        const std::vector<std::string> where{port_id(s.out, l.a), port_id(s.out, l.b)};
        if (narrow)
            s.report("narrow-link", ends,
                     fmt::format("{} lanes, most links of its kind have {}", l.rate.width, expected.width),
                     0.95, where);
        if (slow)
            s.report("slow-link", ends,
                     fmt::format("{} Gbit/s a lane, most links of its kind have {}",
                                 l.rate.lane_gbps10 / 10.0, expected.lane_gbps10 / 10.0),
                     0.95, where);
    }
}

}  // namespace banyan::topo::build
