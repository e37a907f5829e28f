// SPDX-License-Identifier: BSD-3-Clause
//
// What a picture of a fabric says, before any geometry: which switches stand together, how many links run
// between each two, what is wrong with which object. Pure functions of the fabric; indices are the fabric's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::draw {

/// Ordered: the worse is the larger.
enum class health : std::uint8_t { good, degraded, broken };

/// One host of a job. Hosts that are not on the fabric are left out by the caller.
struct job_mark {
    std::uint32_t host = none;
    std::uint32_t slot = none;  ///< none for a spare, and for a job whose order is not known
    std::uint32_t color = 0;    ///< hosts of one colour belong together
    bool spare = false;
    std::string label;  ///< short, on the host: "A0"
    std::string about;  ///< "slot 3: ranks 24-31, tp0 pp1 dp0"
};

struct job {
    std::string text;  ///< one line about it, for the title
    std::vector<std::string>
        colors;  ///< color -> what it stands for: "pipeline unit A", "dp 0"; may be empty
    std::vector<job_mark> marks;
};

/// What a defect's objects turn out to be.
struct targets {
    health severity = health::degraded;
    bool of_group = false;  ///< it is the leaf group that is broken, not its switches
    bool notice = false;    ///< no defect
    bool of_names = false;  ///< only what something is called is wrong: everything else is told before it
    std::vector<std::uint32_t> switches, hcas, hosts, links;
};

/// All links between two switches, drawn as one line.
struct bundle {
    std::uint32_t low = none, high = none;  ///< switches; `low` has the lower level
    std::uint32_t count = 0;                ///< 0: most leaves of the group have this bundle, `low` has not
    std::uint32_t usual = 0;                ///< links of most bundles between these levels
    link_rate rate;                         ///< the slowest in it
    health state = health::good;
};

/// Leaf groups below the same spines.
struct spine_group {
    std::vector<std::uint32_t> spines, groups;
};

struct rate_use {
    link_rate rate;
    std::uint32_t links = 0;
};

struct scene {
    std::vector<health> switches, hcas, hosts, links, groups;
    std::vector<std::uint32_t> defects_of_group;
    std::vector<std::uint32_t> group_of_switch;  ///< of a leaf, any plane; none otherwise
    std::vector<targets> defects;                ///< as fabric.defects
    std::vector<spine_group> spine_groups;
    std::vector<std::uint32_t> cores;  ///< above the spines, highest level first
    std::vector<std::uint32_t> stray;  ///< switches that stand in no spine group and are no core
    std::vector<bundle> bundles;       ///< by (low, high)
    std::vector<rate_use> rates;       ///< fastest first
};

scene make_scene(const fabric& f);

/// Defects, without what is told and is none.
inline std::size_t faults(const scene& s) {
    return static_cast<std::size_t>(
        std::count_if(s.defects.begin(), s.defects.end(), [](const targets& d) { return !d.notice; }));
}

/// Indices of the defects in the order in which to tell them: the worst first, names last, notices after
/// them; the model's order otherwise.
std::vector<std::size_t> in_order(const scene& s);
/// Finds what each defect is about; at most 64 objects of one name, so that hostile dumps stay cheap.
std::vector<targets> find_targets(const fabric& f);
/// Links between switches, bundled and judged against the usual bundle of their levels.
std::vector<bundle> bundle_links(const fabric& f, const scene& s);

/// The switch that stands for all planes of a box: pictures show boxes.
inline std::uint32_t box_of(const fabric& f, std::uint32_t sw) {
    const auto box = f.switches[sw].box;
    return box < f.switches.size() ? box : sw;
}

/// Gbit/s.
inline std::uint32_t speed(const link_rate& r) { return std::uint32_t{r.width} * r.lane_gbps10 / 10; }
/// "200 Gbit/s (4x HDR)".
std::string rate_text(const link_rate& r);

/// "12 links", "1 link", "12,800 hosts"; `many` is for plurals that an "s" does not make.
std::string counted(std::size_t n, const std::string& one, const std::string& many = {});

}  // namespace banyan::topo::draw
