// SPDX-License-Identifier: BSD-3-Clause
//
// What a line is to an incident: of its culprit, the cause of it, what follows from it, or another fault.
// Pure.
#pragma once

#include "fault/catalog/symptom.hpp"
#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

bool is_port(const kernel_fault& f, catalog::symptom code);
bool speaks_of_a_card(const kernel_fault& f);
bool of_a_gpu(const kernel_fault& f);

bool is_another_gpu(const incident& i, const event& e);
/// The fault that its culprit has.
bool is_the_culprits(const incident& i, const kernel_fault& f);
bool is_the_cause(const incident& i, const event& e, precedence w);
bool is_consequence(const incident& i, const event& e);
bool of_another_job(const incident& i, const event& e, precedence w);
bool is_another_fault(const incident& i, const event& e, precedence w);

/// Its culprit is an HCA's port that went down.
bool lost_a_port(const incident& i);
/// A PCIe switch, below which it is not the first card that was lost.
bool accuses_a_switch(const incident& i, const event& e);
bool is_of_the_switch(const incident& i, const event& e);

}  // namespace banyan::fault
