// SPDX-License-Identifier: BSD-3-Clause
//
// An HCA has a port on each chip of its leaf's box: one that is dark is a share of its link, and no rail. A
// chip that none of the box's HCAs reaches is one culprit, not as many as there are HCAs.
#include <algorithm>
#include <bit>
#include <map>

#include <banyan/topo/capacity.hpp>
#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

using plane_set = std::uint32_t;  ///< bit N = plane N, of which a box has nine at most

class plane_finder {
  public:
    explicit plane_finder(state& s)
        : s_(s), f_(s.out), chips_(f_.switches.size()), reached_(f_.switches.size()) {
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i) chips_[f_.switches[i].box].push_back(i);
        of_hca_.resize(f_.hcas.size());
        up_.resize(f_.switches.size());
        for (const auto& l : f_.links) {
            const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
            if (hca.kind == node_kind::hca && on_planes(hca.index)) {
                if (f_.switches[sw.index].box != f_.hcas[hca.index].leaf) continue;
                of_hca_[hca.index] |= 1u << f_.switches[sw.index].plane;
            } else if (hca.kind == node_kind::switch_node && sw.kind == node_kind::switch_node) {
                const auto low =
                    f_.switches[hca.index].level < f_.switches[sw.index].level ? hca.index : sw.index;
                ++up_[low];
            }
        }
    }

    void find() {
        std::map<std::uint16_t, std::vector<int>> counts;  // by the chip of the HCA
        for (std::uint32_t i = 0; i < f_.hcas.size(); ++i)
            if (of_hca_[i] != 0) {
                counts[s_.chip_of_hca[i]].push_back(std::popcount(of_hca_[i]));
                reached_[f_.hcas[i].leaf] |= of_hca_[i];
                ++hcas_[f_.hcas[i].leaf];
            }
        std::map<std::uint16_t, int> usual_of;
        for (auto& [chip, all] : counts) usual_of[chip] = usual(std::move(all)).value;
        plane_set all = 0;
        for (const auto planes : of_hca_) all |= planes;
        for (std::uint32_t box = 0; box < chips_.size(); ++box)
            if (reached_[box] != 0 && hcas_[box] > 1) find_dead_chips(box, all & ~reached_[box]);
        for (std::uint32_t i = 0; i < f_.hcas.size(); ++i) {
            const int lacks = of_hca_[i] == 0 ? 0 : usual_of[s_.chip_of_hca[i]] - std::popcount(of_hca_[i]);
            if (lacks > 0) tell(i, lacks, hcas_[f_.hcas[i].leaf] > 1 ? reached_[f_.hcas[i].leaf] : all);
        }
    }

  private:
    bool on_planes(std::uint32_t i) const {
        return f_.hcas[i].host != none && f_.hcas[i].leaf != none && chips_[f_.hcas[i].leaf].size() > 1;
    }

    std::uint32_t chip(std::uint32_t box, unsigned plane) const {
        const auto at = std::ranges::find(chips_[box], plane, [&](auto sw) { return f_.switches[sw].plane; });
        return at == chips_[box].end() ? none : *at;
    }

    /// The chip's own name, also where it is not in the dump.
    std::string chip_name(std::uint32_t box, unsigned plane) const {
        const auto sw = chip(box, plane);
        return sw != none ? label(s_, sw)
                          : fmt::format("{} U{}", short_switch_name(f_.switches[box].name), plane + 1);
    }

    void find_dead_chips(std::uint32_t box, plane_set dead) {
        for (unsigned plane = 0; dead >> plane != 0; ++plane) {
            if ((dead >> plane & 1) == 0) continue;
            const auto sw = chip(box, plane);
            std::vector<std::uint32_t> up;
            for (const auto other : chips_[box])
                if (other != sw) up.push_back(up_[other]);
            const auto usual_up = usual(std::move(up)).value;
            s_.report(
                "missing-plane", {chip_name(box, plane)},
                fmt::format("a chip of the box that none of {} reaches; it has {} of {} up",
                            counted(hcas_[box], "HCA"), sw == none ? 0 : up_[sw], counted(usual_up, "link")),
                0.95, {hex(f_.switches[sw == none ? box : sw].id)});
        }
    }

    /// Tells which planes the HCA lacks that others on its box have.
    void tell(std::uint32_t i, int lacks, plane_set others) {
        auto dark = others & ~of_hca_[i];
        if (dark == 0 || s_.counts_only("missing-plane")) return;
        const auto& h = f_.hcas[i];
        const auto has = std::popcount(of_hca_[i]);
        std::string to;
        std::vector<std::string> where;
        for (unsigned plane = 0; dark >> plane != 0; ++plane) {
            if ((dark >> plane & 1) == 0) continue;
            to += fmt::format("{}{} port {}", to.empty() ? "" : ", ", chip_name(h.leaf, plane), h.leaf_port);
            const auto sw = chip(h.leaf, plane);
            where.push_back(sw == none ? hex(h.id) : port_id(f_.switches[sw].id, h.leaf_port));
        }
        s_.report("missing-plane", {h.name},
                  fmt::format("{} of {} planes ({} of {} Gbit/s): no link to {}", has, has + lacks,
                              has * gbps(h.rate), (has + lacks) * gbps(h.rate), to),
                  0.95, std::move(where));
    }

    state& s_;
    const fabric& f_;
    std::vector<std::vector<std::uint32_t>> chips_;  ///< by box
    std::vector<plane_set> of_hca_, reached_;        ///< by HCA; by box: that any of its HCAs has
    std::vector<std::uint32_t> up_;                  ///< by chip: links to switches above
    std::map<std::uint32_t, std::size_t> hcas_;      ///< by box
};

}  // namespace

void find_missing_planes(state& s) {
    if (std::ranges::any_of(s.out.switches, [](const auto& sw) { return sw.plane > 0; }))
        plane_finder(s).find();
}

}  // namespace banyan::topo::build
