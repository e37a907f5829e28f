// SPDX-License-Identifier: BSD-3-Clause
//
// A network of its own for a test's nodes: each in a network namespace, all on one bridge, so that one can be
// cut off for real. What is sent then vanishes without an answer, as behind a dead switch. Needs root.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace ckptd_test {

class network {
  public:
    /// Nodes 1..nodes. Throws std::runtime_error where the host gives no namespaces.
    explicit network(int nodes);
    ~network();
    network(const network&) = delete;

    std::string addr(int node) const { return "10.77.0." + std::to_string(node); }
    /// What a program of this node is run by.
    std::vector<std::string> enter(int node) const;
    /// Nobody reaches the node, and it reaches nobody.
    void cut(int node);
    void heal(int node);
    /// What `from` sends to `to` vanishes; everybody else still has both.
    void cut(int from, int to);
    void heal(int from, int to);

  private:
    std::vector<pid_t> holders_;  ///< of the namespaces; 0 holds the bridge
};

}  // namespace ckptd_test
