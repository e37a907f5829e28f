// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/earlier_nodes.hpp"

#include <set>

namespace banyan::ckpt::agreement {

bool earlier_nodes::forget() {
    if (awaits_launch_ || nodes_.empty()) return false;
    nodes_.clear();
    return true;
}

std::vector<node_address> earlier_nodes::list() const {
    std::vector<node_address> out;
    for (const auto& [name, addr] : nodes_) out.push_back({name, addr});
    return out;
}

std::vector<node_address> whom_to_ask(const std::vector<node_address>& members,
                                      const std::vector<node_address>& known) {
    std::set<std::string> names, addresses;
    for (const auto& m : members) {
        names.insert(m.name);
        addresses.insert(m.addr);
    }
    std::vector<node_address> out;
    for (const auto& n : known)
        if (!names.contains(n.name) && addresses.insert(n.addr).second) out.push_back(n);
    return out;
}

}  // namespace banyan::ckpt::agreement
