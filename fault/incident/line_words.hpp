// SPDX-License-Identifier: BSD-3-Clause
//
// What an incident takes from the line of its culprit: its words, and what the rules ask for. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

std::string cause_words(const event& e);
std::string reason_of(const event& e, precedence w);
/// What the driver asks for with an Xid 154.
std::string_view verdict_words(std::uint32_t code);
severity severity_of(precedence w);
object_kind kind_of(const kernel_fault& f);
/// A GPU that fell off the bus counts as what the driver calls it.
std::optional<std::uint32_t> xid_of(const kernel_fault& f);
/// Empty: it is none of the catalogue's.
std::string symptom_of(const kernel_fault& f);

}  // namespace banyan::fault
