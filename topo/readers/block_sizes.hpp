// SPDX-License-Identifier: BSD-3-Clause
//
// BlockSizes of topology/block: nodes of a base block, then of blocks that are made of 2, 4, 8, ... of those
// in the order of the file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

class block_sizes {
  public:
    /// Numbers with commas between them. What is none, or does not rise, is a complaint.
    void take(dump& out, std::uint32_t line, std::string_view list);
    /// How many of the blocks below one of each size holds.
    std::vector<std::size_t> spans() const;

  private:
    std::vector<std::uint64_t> sizes_;
};

}  // namespace banyan::topo
