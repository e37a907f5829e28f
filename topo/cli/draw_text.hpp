// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric and a job on it as a picture of characters.
#pragma once

#include <string>

#include "topo/draw/scene.hpp"

namespace banyan::topo::cli {

/// At most 100 columns wide, in lines. `j` may be null.
std::string text_picture(const fabric& f, const draw::job* j, bool color);

}  // namespace banyan::topo::cli
