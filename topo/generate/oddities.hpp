// SPDX-License-Identifier: BSD-3-Clause
//
// What real fabrics have beside or instead of the plain shape, and what fails in them as a whole. All of it
// is sound but the three losses and the ports without a LID, which are told as planted defects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo::generate {

struct options;

/// Storage HCAs of compute hosts on switches that hosts of several leaf groups share.
struct shared_storage {
    enum class way : std::uint8_t { few_uplinks, own_spine, apart };  ///< how these switches are joined
    std::uint32_t rails = 0;                                          ///< HCAs of each host, 0 to 2
    way up = way::few_uplinks;
    std::uint32_t uplinks = 2;  ///< of each switch: to one spine; with a spine of its own: to that
    bool first = false;         ///< their devices come before those for compute, not after
    std::string rate;           ///< empty: as all
    std::uint32_t servers = 0;  ///< on these switches, of two HCAs each
};

/// What hosts call their devices, in order of the rails.
enum class device_form : std::uint8_t {
    numbered,  ///< mlx5_0
    rdma,      ///< rdma0
    ib,        ///< mlx5_ib0
    bond,      ///< mlx5_bond_0
    bus,       ///< ibp9s0
    domain,    ///< rdmaP9018p0s2
};

struct naming {
    device_form devices = device_form::numbered;
    std::uint32_t kept_by = 0;  ///< every so-manieth host kept mlx5_0, ...; 0: none
    bool kept_first = false;    ///< and these only for the first device
    std::string host_suffix;    ///< ".pod2.example"
    std::string format = "%h %d";
};

/// Leaves that serve something other than the compute hosts, or nobody.
struct service_leaves {
    enum class way : std::uint8_t {
        one_spine,     ///< two cables to one spine
        second_cores,  ///< under a spine of their own, which has two cables to every second core
        some_spines,   ///< one cable to each of so many spines
    };
    std::uint32_t count = 0;
    way up = way::one_spine;
    std::uint32_t spines = 0;     ///< of some_spines: how many
    std::uint32_t hosts = 0;      ///< on each; 0: there is none
    std::uint32_t hcas = 1;       ///< of each of them, the leaves in turn
    std::string host_rate;        ///< empty: as all
    bool storage = false;         ///< they are storage servers
    std::string name = "mgmt";    ///< of the hosts; the leaves are called alike
    std::uint32_t hostless = 0;   ///< leaves like those for compute, but nobody is on them
    double hostless_uplinks = 1;  ///< the share of the spines that these are joined to
    bool unmanaged = false;       ///< no leaf was ever named
};

/// Groups of hosts that are less than the others.
struct lesser {
    std::uint32_t groups = 0;        ///< the last ones
    std::uint32_t hcas = 0;          ///< of each host there; 0: as all
    std::string rate;                ///< of their HCAs' links; empty: as all
    std::uint32_t older_leaves = 0;  ///< switches of the generation before, the last ones
};

/// Whole things that are not there, or ports that were never set up.
struct losses {
    std::uint32_t spines = 0, cores = 0;
    std::uint32_t chips = 0;   ///< one plane of a leaf's box
    std::uint32_t planes = 0;  ///< one plane of an HCA
    double lids = 0;           ///< share of the hosts whose ports have LID 65535, while others have one
};

struct oddities {
    shared_storage storage;
    naming names;
    service_leaves services;
    lesser less;
    losses lost;
    bool lids = false;       ///< each node has one, as after a subnet manager; all planes of an HCA share it
    std::uint32_t dpus = 0;  ///< in DPU mode, on the groups' leaves in turn
    std::uint16_t dpu_device = 0;    ///< 0: 0xa2d6
    bool dpus_on_all_rails = false;  ///< or on the first only
    bool ring = false;               ///< no spines: the leaves of one rail are joined in a ring
    std::uint32_t ring_links = 1;    ///< of each two neighbours
};

/// The kinds of fabrics that `gen --kind` knows: "storage-spine", "dead-core", ...
const std::vector<std::string_view>& kinds();
/// Gives the options what the kind is made of, varied by their seed. Where the shape cannot have it, it gets
/// what is missing (planes, cores, spines); an unknown name is an error.
result<void> add_kind(options& o, std::string_view kind);

}  // namespace banyan::topo::generate
