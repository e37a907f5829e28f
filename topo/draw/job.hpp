// SPDX-License-Identifier: BSD-3-Clause
//
// A job as the pictures show it: which host runs what, and which hosts belong together.
#pragma once

#include <span>
#include <string>

#include <banyan/topo/placement.hpp>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {

/// What hosts of one colour have in common: "unit" (they share a pipeline group), or the coordinate of their
/// first rank in a dimension, by its name.
result<job> job_of(const fabric& f, const request& r, std::span<const std::uint32_t> nodes,
                   std::span<const std::uint32_t> spares, const std::string& color_by);
/// By names. Those that the fabric lacks are left out and counted in the job's text.
result<job> job_of(const fabric& f, const request& r, std::span<const std::string> nodes,
                   std::span<const std::string> spares, const std::string& color_by);
/// Hosts without an order.
job job_of(const fabric& f, std::span<const std::uint32_t> hosts);

}  // namespace banyan::topo::draw
