// SPDX-License-Identifier: BSD-3-Clause
//
// A JSON object of named objects, as a safetensors header is one: {"weight": {"dtype": "F32", "shape": [2]}}.
// Read as a stream, since there may be a million of them, and since its author may be anybody.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace banyan::ckpt {

struct header_entry {
    std::string name;
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<std::pair<std::string, std::vector<std::uint64_t>>> lists;  ///< of at most max_dimensions

    const std::string* text(std::string_view key) const;
    const std::vector<std::uint64_t>* list(std::string_view key) const;
};

/// Calls `each` for every entry, in the order in which they stand there. Fields that are neither a text nor a
/// list of whole numbers are passed over. Stops at the first entry that `each` does not accept.
result<void> read_entries(std::string_view json, const std::function<result<void>(header_entry&)>& each);

}  // namespace banyan::ckpt
