// SPDX-License-Identifier: BSD-3-Clause
//
// A session's request as it goes over the Unix socket; the daemon's parse_session() reads it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ckptd/protocol/protocol.hpp"

namespace banyan::ckpt {

nlohmann::json session_to_json(const session_request& r);

}  // namespace banyan::ckpt
