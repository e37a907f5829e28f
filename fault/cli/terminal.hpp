// SPDX-License-Identifier: BSD-3-Clause
//
// How banyan-fault writes, and reads logs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::fault {

void put(const std::string& text);
/// Log lines and names come from hosts and users: what is shown on a terminal must not command it.
void show(const std::string& text);
std::string as_text(const nlohmann::json& j, int indent);
/// To the standard error; gives `status` back.
int complain(const error& e, int status);

/// At most `width` bytes; a ~ at the end says that there was more.
std::string cut(std::string text, std::size_t width);

/// Breaks `text` into lines of `width`, each but the first after `indent` blanks.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

/// The lines of a file, "-" for the standard input. Gives the number of those that were cut at `longest`.
result<std::uint64_t> read_lines(const std::string& path, std::size_t longest,
                                 const std::function<void(std::string_view)>& take);

}  // namespace banyan::fault
