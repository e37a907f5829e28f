// SPDX-License-Identifier: BSD-3-Clause
//
// What a switch is called in a report. Unmanaged switches all have the factory's name, and some sites give
// one name to several: those go by a name made of the GUID alone, which no other node, cable or report
// changes.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

class switch_names {
  public:
    switch_names() = default;
    explicit switch_names(const fabric& f);

    /// Whether it has no name of its own.
    bool nameless(std::uint32_t sw) const { return !made_up_[sw].empty(); }
    /// "switch-" and the last six digits of the GUID; all of them where another nameless one ends alike.
    /// Empty where it has a name of its own.
    const std::string& made_up(std::uint32_t sw) const { return made_up_[sw]; }
    /// Its own name, or the one made up.
    const std::string& of(const fabric& f, std::uint32_t sw) const {
        return nameless(sw) ? made_up_[sw] : f.switches[sw].name;
    }
    /// Its own name, or the one made up and its GUID: what a defect goes by.
    std::string label(const fabric& f, std::uint32_t sw) const;

  private:
    std::vector<std::string> made_up_;
};

/// Where each switch stands, by its neighbours.
class switch_places {
  public:
    switch_places(const fabric& f, const switch_names& names);
    /// "leaf of n[01-32] (g1), rail 2", "spine above leaf-[01-16]"; where those have no names either, "spine
    /// above g[1-4]".
    std::string of(std::uint32_t sw) const;

  private:
    std::string of_leaf(std::uint32_t sw) const;
    std::string named(std::uint32_t sw, bool below) const;
    std::string groups_below(std::uint32_t sw) const;

    const fabric& f_;
    const switch_names& names_;
    std::vector<std::uint32_t> group_of_leaf_;       ///< by switch
    std::vector<std::vector<std::uint32_t>> peers_;  ///< by switch
};

}  // namespace banyan::topo
