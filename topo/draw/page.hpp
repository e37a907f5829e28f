// SPDX-License-Identifier: BSD-3-Clause
//
// The files of page/, which embed.cmake puts into the program.
#pragma once

#include <string_view>

namespace banyan::topo::draw::page {

extern const std::string_view frame, style, script;

}  // namespace banyan::topo::draw::page
