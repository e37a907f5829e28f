// SPDX-License-Identifier: BSD-3-Clause
//
// Switches that are not there at all. What is left of one are the ports that led to it, dark on all switches
// below, in a row that is regular otherwise. A spare port is dark as well, so something else must agree: like
// blocks that use these ports, or the numbers in the names, or a long row with one hole.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topo/model/build.hpp"
#include "topo/model/mesh.hpp"
#include "topo/model/missing_ports.hpp"
#include "topo/model/row_names.hpp"

namespace banyan::topo::build {

/// Looks at one mesh after the other, from the leaves up; then reports, the planes of a box together.
class missing_switches {
  public:
    missing_switches(state& s, missing_ports& all);
    void find(const mesh& m, const std::vector<block>& blocks,
              const std::vector<std::vector<std::uint32_t>>& lowers);
    void report();

  private:
    using ports = missing_ports::ports;
    /// A block by the ports that its uppers have on most lowers, by those; none where they are not regular.
    struct row {
        std::vector<ports> at;
        std::vector<std::uint32_t> uppers;   ///< with `at`
        std::vector<std::uint32_t> lowers;   ///< those that are cabled as most
        std::vector<std::uint32_t> regions;  ///< whose way up it is, ascending
    };
    /// What a row lacks, and where each upper stands when the holes count.
    struct hole {
        ports dark;
        long at = 0;
        std::vector<long> places;
        row_name name;
        double confidence = 0.9;
    };
    struct finding {
        std::vector<std::uint32_t> lowers;
        std::vector<std::uint8_t> planes;
        ports dark;
        std::string name, rail;
        std::size_t has = 0, of = 0, below = 0, above = 0;  ///< of a lower: links up; cables
        double confidence = 0.9;
        std::vector<std::string> where;
    };
    using like_rows = std::map<std::vector<ports>, std::vector<const row*>>;

    row row_of(const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers);
    std::vector<hole> against_like(const like_rows& all, const std::vector<row>& rows, const row& r);
    std::vector<hole> against_step(const row& r) const;
    std::vector<hole> left_out(const row& r, long step) const;
    row_name name_of(const row& r, const std::vector<long>& places, long at) const;
    bool dark_on_all(const row& r, const ports& p) const;
    void take(const row& r, const std::vector<row>& rows, const hole& h, std::size_t holes);
    /// How many cables led up from it; the ports that they were on where those are certain.
    using ends_above = std::pair<std::size_t, std::vector<std::pair<std::uint32_t, std::uint16_t>>>;
    ends_above above(const row& r, const std::vector<row>& rows, const hole& h);
    bool is_hole_above(const row& r, const std::vector<row>& rows, const hole& h);
    std::string rail_of(const row& r) const;
    void tell(const finding& all, bool whole_box);

    state& s_;
    missing_ports& ports_;
    std::vector<std::uint32_t> region_;  ///< by switch: its leaf group, or its block of the mesh below
    std::vector<std::uint32_t> rail_;    ///< by switch: of all that is below it
    std::uint32_t regions_ = 0;
    std::set<std::pair<std::string, std::uint8_t>> taken_;  ///< names, and planes
    std::vector<finding> found_;
};

}  // namespace banyan::topo::build
