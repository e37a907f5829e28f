// SPDX-License-Identifier: BSD-3-Clause
//
// A tree of switches and nodes that are known by their names alone, as Slurm's topology files have it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

class name_tree {
  public:
    explicit name_tree(dump& out) : out_(out) {}

    /// A switch, or a block; both lists are host lists of Slurm, and may be empty. What cannot be read is a
    /// complaint.
    void add(std::uint32_t line, std::string_view name, std::string_view nodes, std::string_view below);
    /// The same, with the names of both lists.
    void add(std::uint32_t line, std::string_view name, std::vector<std::string> nodes,
             std::vector<std::string> below);
    /// Makes switches above what was added: one for each `span` of these, another for each `span` of those
    /// for the next, and one above all. They have no names of their own.
    void join_in_order(const std::vector<std::size_t>& spans);
    /// Puts a switch of that name, which may be none that a file can have, above those; nothing above none.
    void join(std::vector<std::string> below, std::string_view name);

    /// Fills the dump. A switch may stand below several others. One below which no node stands is left out.
    result<void> finish();

  private:
    struct entry {
        std::string name;
        std::uint32_t line = 0;
        std::vector<std::string> nodes;
        std::vector<std::string> below;
        std::vector<std::uint32_t> parents;  ///< indices into entries_
        bool used = false;                   ///< a node is below it
    };
    std::vector<std::string> expand(std::uint32_t line, std::string_view name, std::string_view list);
    void find_parents();
    void find_used();
    std::vector<std::uint32_t> parents_of(std::uint32_t i) const;

    dump& out_;
    std::vector<entry> entries_;
    std::size_t names_ = 0;
};

}  // namespace banyan::topo
