// SPDX-License-Identifier: BSD-3-Clause
//
// Reading what ibnetdiscover prints, and making the model of it. The text is not trusted: nothing in it can
// crash the reader, and nothing is dropped silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// A port line of a record: what the peer is, as this side sees it.
struct dump_port {
    std::uint16_t port = 0;
    node_kind peer_kind = node_kind::switch_node;
    guid peer = 0;
    std::uint16_t peer_port = 0;
    std::string peer_name;
    link_rate rate;
};

/// One switch, HCA or router of the dump.
struct dump_node {
    node_kind kind = node_kind::switch_node;
    guid id = 0;
    guid system = 0;  ///< system image GUID; 0 = not given
    std::string name;
    std::uint32_t lid = 0;
    std::uint16_t ports = 0;
    std::uint32_t line = 0;  ///< where its record stands, from 1
    std::vector<dump_port> peers;
};

/// A line that could not be read, or a record that contradicts the others. The rest of the dump was read.
struct complaint {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::string what;
};

struct dump {
    std::vector<dump_node> nodes;  ///< in the order of the file
    std::vector<complaint> complaints;
    std::uint32_t crc = 0;  ///< CRC-32C of the text
};

constexpr std::size_t max_dump_bytes = std::size_t{1} << 30;

/// An error only where nothing usable is in the text: empty, cut in the middle, or another tool's output
/// (with a hint).
result<dump> read_ibnetdiscover(std::string_view text);

struct build_options {
    std::int64_t created_unix_s = 0;         ///< recorded in the fabric
    std::vector<std::string> exclude_hosts;  ///< management hosts and the like, by name
};

/// Never fails: what does not fit the model is listed in excluded and defects.
fabric build_fabric(const dump& d, const build_options& options = {});

}  // namespace banyan::topo
