// SPDX-License-Identifier: BSD-3-Clause
//
// Reads and checks what arrives as JSON: sessions, steps, keys. Nothing here throws.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ckptd/agreement/key.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {

constexpr std::uint32_t max_world = 1'048'576;

/// Every rank in exactly one node, buddies in range, an absolute directory, self among the nodes.
result<session_request> parse_session(const nlohmann::json& meta);
/// Names of a step's nodes: one per slot, each one known to the session, none twice.
result<std::vector<std::string>> parse_step_nodes(const nlohmann::json& meta, const session_request& session);
/// {"key_generation", "step"}
result<copy_key> get_key(const json_fields& in);
result<copy_key> get_key(const nlohmann::json& meta);
void put_key(nlohmann::json& meta, const copy_key& key);

}  // namespace banyan::ckpt
