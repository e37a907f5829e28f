// SPDX-License-Identifier: BSD-3-Clause
//
// Storage that stands still until the test lets it go on, and what has come there.
#pragma once

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "cluster.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace ckptd_test {

class gate {
  public:
    gate() { std::ofstream{path_}; }
    ~gate() { open(); }
    gate(const gate&) = delete;
    void open() const { std::filesystem::remove(path_); }
    /// Nodes whose storage waits for it.
    cluster::options on(std::initializer_list<int> nodes, int all, const std::string& extra = "") const {
        cluster::options o{all, extra, {}};
        for (const int node : nodes)
            o.before[node] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                              "SLOW_MATCH=.safetensors.tmp", "SLOW_GATE=" + path_};
        return o;
    }

  private:
    const std::string path_ = banyan::testing::scratch_path("gate").string();
};

inline bool is_stored(const cluster& c, int step) {
    return std::filesystem::exists(c.dir() + "/store/step-" + std::string(step < 10 ? 11 : 10, '0') +
                                   std::to_string(step) + "/COMMIT");
}

}  // namespace ckptd_test
