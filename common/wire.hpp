// SPDX-License-Identifier: BSD-3-Clause
//
// Framing between banyan's processes, on Unix and TCP sockets alike. A frame is
//
//     offset size
//     0      4    magic "BNYN"
//     4      2    protocol version, 1 (little endian, as all numbers here)
//     6      2    type: what the receiver does with it; each protocol lists its own
//     8      4    bytes of metadata (JSON object, at most max_meta)
//     12     4    bytes of body (raw, at most max_body)
//     16     ...  metadata, then body
//
// A peer of another version, a wrong magic or a length over the limit ends the connection: nothing is skipped
// or guessed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::wire {

constexpr std::uint16_t version = 1;
constexpr std::size_t header_bytes = 16;
constexpr std::size_t max_meta = 4u << 20;
constexpr std::size_t max_body = 16u << 20;

struct header {
    std::uint16_t type = 0;
    std::uint32_t meta_bytes = 0;
    std::uint32_t body_bytes = 0;
};

struct frame {
    std::uint16_t type = 0;
    nlohmann::json meta;
    std::vector<std::byte> body;
};

std::array<std::byte, header_bytes> encode_header(const header& h);
/// Checks magic, version and limits.
result<header> decode_header(std::span<const std::byte, header_bytes> bytes);
/// Metadata as a JSON object; never throws. Nesting deeper than 16 is refused. Its fields are read with
/// json_fields.
result<nlohmann::json> decode_meta(std::span<const std::byte> bytes);

// --- Blocking, for command-line tools, plugins and the checkpoint client. Each call has a deadline and never
// raises SIGPIPE. ---

using deadline = clock::time_point;

result<unique_fd> connect_unix(const std::string& path, deadline until);
result<void> send_frame(int fd, std::uint16_t type, const nlohmann::json& meta,
                        std::span<const std::byte> body, deadline until);
/// `passed` gets the one descriptor that came with the frame (SCM_RIGHTS), if any; with nullptr a descriptor
/// is closed.
result<frame> receive_frame(int fd, deadline until, unique_fd* passed = nullptr);
/// One request, one reply. A reply whose metadata has "error" becomes that error.
result<frame> call(int fd, std::uint16_t type, const nlohmann::json& meta, deadline until);

/// Metadata of a reply that says what went wrong: {"error": ..., "hint": ..., "code": ...}; error_from is its
/// inverse.
nlohmann::json error_meta(const error& e);
std::optional<error> error_from(const nlohmann::json& meta);

}  // namespace banyan::wire
