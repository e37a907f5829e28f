// SPDX-License-Identifier: BSD-3-Clause
//
// Who holds which rank's shard of the step that the ranks began from. The first slot's daemon knows it, since
// it chose that step; another one asks when a process of its ranks reads what other ranks have saved.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ckptd/agreement/key.hpp"
#include "ckptd/net/async.hpp"
#include "ckptd/protocol/protocol.hpp"

namespace banyan::ckpt {

struct session;

struct step_places {
    copy_key key;
    std::map<std::uint32_t, std::vector<session_node>> of;  ///< by the rank that saved it
};

/// At the first slot's daemon. errc::unavailable: it does not know, as where it was started again since.
result<step_places> known_places(const session& s);
nlohmann::json to_json(const step_places& places);
result<step_places> read_places(const nlohmann::json& in);

}  // namespace banyan::ckpt
