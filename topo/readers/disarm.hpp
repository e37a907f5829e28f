// SPDX-License-Identifier: BSD-3-Clause
//
// Any host names itself, and its name ends on terminals and in logs.
#pragma once

#include <string>

namespace banyan::topo {

/// What commands a terminal becomes question marks, byte for byte: control characters (C1 too, alone or in
/// UTF-8), marks that turn the direction of text, bytes that are no UTF-8. Ends of lines (LF, CR LF) and tabs
/// stay.
void disarm(std::string& text);

}  // namespace banyan::topo
