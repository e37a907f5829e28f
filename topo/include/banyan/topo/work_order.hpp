// SPDX-License-Identifier: BSD-3-Clause
//
// The difference of two days as what a technician has to do: at which switch, port and connector, whose cable
// it is, and what to do there.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/diff.hpp>

namespace banyan::topo {

struct work_item {
    enum class change : std::uint8_t {
        lost_switch,
        lost_host,
        lost_hca,
        lost_link,
        moved,
        slower,
        faster,
        added
    };
    change what = change::lost_link;
    link_end at;            ///< of a cable its switch end, of two switches the lower; else the node itself
    std::string connector;  ///< of `at` on the switch's front: "17/2"; empty where its numbering is not known
    link_end to;            ///< the other end; of a moved cable what it leads to now. Without a GUID: none
    std::string to_connector;  ///< the same of `to`
    link_end was;              ///< of a moved cable: what it led to before
    std::string was_connector;
    std::string host, device, leaf_group;  ///< of the HCA that it is about; empty between switches
    std::string place;                     ///< the host's failure domains, "rack=r12 pdu=a"
    std::size_t links = 0;                 ///< of a node that came or went: links that did so with it
    link_rate before, after;
    std::string to_do;
};

std::string_view name_of(work_item::change c);  ///< "lost-switch", ...

/// Losses first, those that explain most before single cables, then what moved, what is slower, and what is
/// only news. A host whose HCAs are all gone is one item, as is a switch: their cables went with them. Two
/// cables that were exchanged are two items that name each other.
std::vector<work_item> work_order(const fabric& before, const fabric& after, const fabric_diff& d);

/// The connector on a switch's front: "17/2" is the second port of cage 17, "17" a cage of one port. Empty
/// where the chip (switch_node::device) is not one whose numbering is known, or the port is inside the box.
std::string connector_of(const switch_node& sw, std::uint16_t port);

}  // namespace banyan::topo
