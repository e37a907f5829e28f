// SPDX-License-Identifier: BSD-3-Clause
//
// NVLinks that GPUs of several nodes share: a switch of theirs, or a GPU that is gone, is heard on many nodes
// at once. One incident is open per domain: a GPU (or a node) with a fault of its own is the culprit; of
// links alone the first of two nodes, and where three or more told of them the switches of the domain. A
// culprit never becomes one of another node: the worse one opens an incident, into which the other is folded
// unless something was begun for that. So nothing that was sealed, approved, counted or done for the one is
// taken for the other's. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

/// A line that says that a link went down, and that the GPU needs a reset for it: at which end.
link_end fallen_end(const kernel_fault& f);
bool speaks_of_an_nvlink(std::uint32_t xid);

/// What a GPU tells of a link that may have failed at its other end: nothing that is its own.
bool shows_a_link(const kernel_fault& f);
/// What the driver asks for, of whatever came before (Xid 154).
bool is_a_verdict(const kernel_fault& f);
/// A GPU that is gone, or needs a reset for a fault of its own: its partners only hear of it.
bool is_a_gpus_own(const kernel_fault& f);

/// The culprit's line is of an NVLink, and nothing tells of a fault of its GPU's own.
bool is_of_links_alone(const incident& i);

/// `e` is of the incident's domain, and of another node than its culprit.
bool crosses_nodes(const incident& i, const event& e);
/// Never a GPU's own fault.
bool belongs_to_its_domain(const incident& i, const event& e, precedence w, std::int64_t window_ms);
/// Of a closed incident of its domain: its node was named in it, and whoever closed it knew of no less.
bool was_seen_to(const incident& i, const event& e);
/// Beside the culprit on another node it counts for nothing.
bool follows_in_its_domain(const incident& i, const event& e);

/// True: the first of its node.
bool note_shown(incident& i, const event& e);
bool add_shown(incident& i, const std::string& node);

/// So many nodes told of links, with `e`, that their switches are the culprit.
bool accuses_its_domain(const incident& i, const event& e);
void accuse_domain(incident& i);
/// Puts the nodes into the cause.
void name_nodes(incident& i);

/// Nothing was begun, approved or cancelled for it: it may become evidence of a worse one.
bool may_be_folded(const incident& i);
void fold_into(incident& home, incident& i);
bool was_folded(const incident& i);
/// What closed those that were folded into it.
std::string folded_into(const incident& home);

}  // namespace banyan::fault
