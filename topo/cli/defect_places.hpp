// SPDX-License-Identifier: BSD-3-Clause
//
// Where a defect is, in words: the ports that lack a cable, and the switches without a name.
#pragma once

#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/switch_names.hpp>

namespace banyan::topo::cli {

class defect_places {
  public:
    explicit defect_places(const fabric& f) : f_(f), names_(f), places_(f, names_) {}

    /// A line for each cable that is missing: "leaf-02 port 33 to spine-01 port 5"; "port ?" where the other
    /// cables do not show which. Empty for a defect that is not about missing cables.
    std::vector<std::string> missing_cables(const defect& d) const;
    /// The switches without a name of their own that it is about, as indices, ascending.
    std::vector<std::uint32_t> nameless(const defect& d) const;
    const std::string& name(std::uint32_t sw) const { return names_.made_up(sw); }
    std::string place(std::uint32_t sw) const { return places_.of(sw); }

  private:
    std::uint32_t find(guid id) const;
    std::string words(std::string_view where) const;

    const fabric& f_;
    switch_names names_;
    switch_places places_;
};

}  // namespace banyan::topo::cli
