// SPDX-License-Identifier: BSD-3-Clause
//
// Small parsers for what people type. All refuse rather than guess; none reads beyond the view it is given.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace banyan {

std::string_view trim(std::string_view text);
/// Splits at every `separator`; empty parts are kept: "a,,b" gives three.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Not of a string that ends with the call: what is returned would point into it.
template <std::same_as<std::string> String>
void split(String&& text, char separator) = delete;
/// Non-negative decimal number without sign or blanks, at most `max`.
result<std::uint64_t> parse_number(std::string_view text, std::uint64_t max = UINT64_MAX);
/// "512", "64K", "4MiB", "1.5G": bytes; K, M, G, T are powers of 1024.
result<std::uint64_t> parse_bytes(std::string_view text);
/// "250ms", "10s", "5m", "2h"; a bare number is seconds.
result<std::chrono::milliseconds> parse_duration(std::string_view text);
/// "dir=/x,every=1": pairs in the order written. Doubled keys and missing '=' are errors.
result<std::vector<std::pair<std::string, std::string>>> parse_key_values(std::string_view text);
/// The member of `known` with the smallest edit distance to `word`, or empty when none is close (for "did you
/// mean").
std::string nearest(std::string_view word, const std::vector<std::string>& known);
/// 1536 -> "1.5 KiB".
std::string format_bytes(std::uint64_t bytes);
/// Text that somebody else chose, as it may stand in a log line or on a terminal: control characters (line
/// ends and escape sequences, C1, those that turn the direction of text) and bytes that are not UTF-8 become
/// \n, \x1b and the like.
std::string printable(std::string_view text);
/// Whether printable() would change it.
bool is_printable(std::string_view text);
/// Host names as Slurm writes them: {"n01","n02","n05"} -> "n[01-02,05]". Order is kept; only neighbours are
/// folded.
std::string compress_hostlist(const std::vector<std::string>& names);
/// What a host list may grow to. Lists come from users as well, and are read by root: both the number of
/// names and their bytes are known before the first name is made.
struct hostlist_limits {
    std::size_t names = 65'536;    ///< more than Slurm has nodes
    std::size_t bytes = 4u << 20;  ///< of all names together
};
/// Of one name, in bytes: what DNS allows.
constexpr std::size_t max_host_name = 255;
/// The reverse of compress_hostlist. A name is one word without brackets, blanks and control characters, with
/// at most one bracket of rising ranges at its end.
result<std::vector<std::string>> expand_hostlist(std::string_view text, const hostlist_limits& limits = {});

}  // namespace banyan
