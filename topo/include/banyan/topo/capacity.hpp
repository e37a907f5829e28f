// SPDX-License-Identifier: BSD-3-Clause
//
// What the links of each tier carry together: oversubscription comes from the dump, not from a drawing.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

/// Gbit/s of one link in one direction; 0 where width or speed is not known.
double gbps(const link_rate& r);

struct tier_capacity {
    /// "hosts to leaves", "leaves to spines", "spines to cores", ...; of a dragonfly "spines to spines"
    std::string name;
    double gbps = 0;  ///< sum over the tier's links, one direction; from spine to spine what each end sends
    double bad_gbps = 0;          ///< what of that is on links that are unsound
    std::vector<double> by_rail;  ///< of the two lowest tiers; empty above, where rails share switches
};

/// From the hosts up; compute hosts only.
std::vector<tier_capacity> capacity(const fabric& f);

/// What hosts can send into the leaves over what leads up from them: 1 or less = non-blocking; 0 when nothing
/// leads up.
double oversubscription(const fabric& f);

/// What hosts can send into one leaf, and what leads up from it.
struct leaf_load {
    std::uint32_t leaf = none;  ///< index into switches: the box where there are planes
    double down_gbps = 0, up_gbps = 0;
    double ratio() const { return up_gbps > 0 ? down_gbps / up_gbps : 0; }  ///< 0 = nothing leads up
};

/// Of each leaf with a compute host, by leaf group and rail.
std::vector<leaf_load> leaf_loads(const fabric& f);

/// For fabric::tier_cost: a byte over a spine costs 1 where leaves have as much up as down, and what they
/// lack more, where an unsound link counts as none; one over the core costs that of the spines' own
/// uplinks on top. Between sites it costs what the leaves of a site send up over the thinnest of its WAN
/// links; 64 where the site file names none.
by_tier<double> tier_costs(const fabric& f);

/// Sets host::nvlink of all.
void number_nvlink_domains(fabric& f);

/// Sets host::gbps, host::slow and leaf_group::thin.
void mark_slow_hosts(fabric& f);

/// Levels of switches: 1 when there are only leaves.
unsigned levels(const fabric& f);

}  // namespace banyan::topo
