// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the end of a dump is missing. The tools print a node after the other with all its links, so each
// link stands in the text twice: what a cut takes away is the second time, of the nodes that would follow and
// of the one in which the text ends.
#pragma once

#include <cstddef>

#include <banyan/topo/reader.hpp>

namespace banyan::topo {

struct cut_signs {
    std::size_t lines = 0;      ///< of links, as the nodes list them: a whole link is two
    std::size_t missing = 0;    ///< of these, to a node without a record
    std::size_t of_last = 0;    ///< to the node whose record is the last, which does not list them itself
    std::size_t elsewhere = 0;  ///< that another node does not list: no cut does that
    const dump_node* last = nullptr;
};

cut_signs look_for_cut(const dump& d);

}  // namespace banyan::topo
