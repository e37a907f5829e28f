// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric as a file: what slurmctld and faultd read. Written whole or not at all; a reader checks it
// before it uses a byte.
//
//     offset size
//     0      8    magic "BNYNFAB" and a zero
//     8      4    format version (little endian, as all numbers)
//     12     4    CRC-32C of the payload
//     16     8    bytes of payload
//     24     ...  payload: the fields of `fabric` in their order; every list and text led by its 32-bit
//     length
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo {

constexpr std::size_t max_snapshot_bytes = std::size_t{1} << 30;

std::string encode_snapshot(const fabric& f);
/// Refuses a wrong magic, version, length or checksum, and any index that points outside its list.
result<fabric> decode_snapshot(std::string_view bytes);

/// Replaces the file atomically.
result<void> save_snapshot(const fabric& f, const std::filesystem::path& path);
result<fabric> load_snapshot(const std::filesystem::path& path);
/// True when the text begins as a snapshot does (tools take a dump or a snapshot).
bool is_snapshot(std::string_view bytes);

}  // namespace banyan::topo
