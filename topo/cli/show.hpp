// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-topo show prints: the whole, one leaf group, or one node.
#pragma once

#include <string>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo::cli {

std::string hex(guid id);

void show_text(const fabric& f);
void show_json(const fabric& f);
result<void> show_routes(const fabric& f, const std::string& path, bool json);
result<void> show_group(const fabric& f, const std::string& id, bool json);
result<void> show_node(const fabric& f, const std::string& name, bool json);

}  // namespace banyan::topo::cli
