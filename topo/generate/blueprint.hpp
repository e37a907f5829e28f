// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric as it is built, before it is printed: nodes, cables, and what each is there for. First drawn whole
// (blueprint.cpp), then spoilt (plant*.cpp), then printed (print.cpp).
#pragma once

#include <algorithm>
#include <random>

#include "topo/generate/generate.hpp"

namespace banyan::topo::generate {

enum class role : std::uint8_t { compute, service, aggregation, router, leaf, storage_leaf, spine, core };

inline bool is_switch(role r) { return r >= role::leaf; }

struct speed_rate {
    std::uint16_t width = 4;
    std::uint8_t speed = 0;  ///< index into speed_names()
};

struct node {
    guid id = 0, system = 0;
    std::string name;
    role what = role::compute;
    std::uint16_t ports = 1;
    std::uint16_t rail = 0;         ///< of a compute HCA or a leaf
    std::uint32_t group = none;     ///< of a leaf
    std::uint32_t host = none;      ///< of its HCAs for compute or storage
    std::uint32_t spine_group = 0;  ///< of a switch below the cores
    std::uint16_t next_port = 0;    ///< of a leaf: the next that is free for what comes later
    std::uint16_t last_low = 0;     ///< of a leaf: below its uplinks
    std::uint16_t device = 0;       ///< number of the chip; 0: what most of its kind have
    std::uint16_t lid = 0;
    duty serving = duty::service;  ///< of what is no compute HCA
    bool doubtful = false;         ///< only its name tells that it is for no job
    bool serves = false;           ///< a leaf that something other than compute HCAs hangs on
    bool gone = false;             ///< not in the dump, nor its cables
    bool silent = false;           ///< without a record
    bool repeated = false;         ///< its record stands twice
};

struct cable {
    std::uint32_t a = 0, b = 0;  ///< nodes; a is the HCA, or the lower switch
    std::uint16_t a_port = 0, b_port = 0;
    speed_rate rate;
    bool gone = false, a_lists = true, b_lists = true;
};

/// How many of everything.
struct sizes {
    std::uint32_t groups = 0, spine_groups = 1, groups_of_spine_group = 0;
    std::uint32_t spines = 0, links = 0;             ///< of a spine group; leaf to spine
    std::uint32_t core_fan = 0, core_links = 0;      ///< cores above one spine position; spine to core
    std::uint32_t storage_leaves = 0;                ///< of a spine group
    std::uint32_t global_links = 0;                  ///< of a pair of spine groups
    std::uint32_t uplink_first = 0, down_ports = 0;  ///< ports: of a leaf; of a spine, used downwards
    speed_rate rate;
};

struct blueprint {
    options o;
    sizes n;
    std::vector<node> nodes;
    std::vector<cable> cables;  ///< of compute HCAs first, see hca_cable
    std::vector<true_host> hosts;
    std::uint32_t first_hca = 0, first_leaf = 0, first_spine = 0, first_core = 0,
                  first_storage = 0;  ///< into nodes

    std::uint32_t hca(std::uint32_t host, std::uint32_t rail) const {
        return first_hca + host * o.rails + rail;
    }
    std::uint32_t leaf(std::uint32_t group, std::uint32_t rail, std::uint32_t plane = 0) const {
        return first_leaf + (group * o.rails + rail) * o.planes + plane;
    }
    std::uint32_t spine(std::uint32_t spine_group, std::uint32_t at, std::uint32_t plane) const {
        return first_spine + (spine_group * n.spines + at) * o.planes + plane;
    }
    std::uint32_t hca_cable(std::uint32_t hca_node, std::uint32_t plane = 0) const {
        return (hca_node - first_hca) * o.planes + plane;
    }
    std::uint32_t hosts_of_group(std::uint32_t group) const {
        return std::min(o.group_size, o.hosts - group * o.group_size);
    }
};

class dice {
  public:
    explicit dice(std::uint64_t seed) : engine_(seed) {}
    /// 0 .. n - 1; the same on every machine, unlike the standard distributions.
    std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(engine_() % n); }
    template <class T>
    void shuffle(std::vector<T>& v) {
        for (std::size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[below(i)]);
    }

  private:
    std::mt19937_64 engine_;
};

const std::vector<std::string>& speed_names();
result<speed_rate> parse_rate(const std::string& text);
std::string to_text(const speed_rate& r);
speed_rate generation_before(speed_rate r);

/// Checks the options and works out the rest.
result<sizes> sizes_of(const options& o);
result<void> check_oddities(const options& o);
blueprint blueprint_of(const options& o, const sizes& n, dice& random);
void connect_switches(blueprint& b);
void add_hosts_above(blueprint& b);
void switch_racks_off(blueprint& b, dice& random);
/// The last of the drawing: what stands beside the groups, lesser groups, names. See oddities.hpp.
void add_oddities(blueprint& b, dice& random);
/// What a host calls one of its devices, counted from 0, storage HCAs among them.
std::string device_word(const blueprint& b, std::uint32_t host, std::uint32_t at);
void forget_switch_name(node& n);
/// The name of a switch: the one at `at` of its spine group or, a core, of its position.
std::string switch_name(const blueprint& b, const node& n, const char* kind, std::uint32_t number,
                        std::uint32_t of, std::uint32_t at, std::uint32_t plane);
/// Some of the switches and hosts get names as other sites give them, or none.
void mix_names(blueprint& b, dice& random);
bool is_named(const node& switch_node);
std::uint32_t digits_of(std::uint64_t highest);
/// The next free port of a leaf box, the same on all its planes.
std::uint16_t take_leaf_port(blueprint& b, std::uint32_t leaf_node);
/// Port counts, and aggregation nodes on the port after the last.
void finish(blueprint& b);
/// One for each node that has none yet, where oddities ask for them.
void assign_lids(blueprint& b);
void plant_defects(blueprint& b, dice& random, truth& facts);
std::string print(const blueprint& b, dice& random);

}  // namespace banyan::topo::generate
