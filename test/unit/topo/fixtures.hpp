// SPDX-License-Identifier: BSD-3-Clause
//
// Real outputs of the fabric tools, and small fabrics made for one test.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/placement.hpp>

namespace banyan::topo::test {

/// Content of test/fixtures/ib/<name>.
std::string fixture(const std::string& name);
/// The model of that dump.
fabric model_of(const std::string& name);
/// Hosts n000.. in leaf groups of these sizes, `per_spine` groups under one spine group. No switches or
/// links.
fabric groups_of(const std::vector<std::uint32_t>& sizes, std::uint32_t per_spine = 1000);
/// Makes a request or fails the test.
request make(const std::string& shape, std::uint32_t nodes, std::uint32_t spares = 0);
std::vector<std::uint32_t> all_hosts(const fabric& f);

}  // namespace banyan::topo::test
