// SPDX-License-Identifier: BSD-3-Clause
//
// Random choices of the fabrics that topo_bench makes, the same on every machine.
#pragma once

#include <cstdint>
#include <random>

namespace banyan::topo::bench {

class chooser {
  public:
    explicit chooser(std::uint64_t seed) : engine_(seed * 7919) {}
    std::uint32_t from(std::uint32_t low, std::uint32_t high) {
        return low + static_cast<std::uint32_t>(engine_() % (high - low + 1));
    }
    double share(double high) { return high * static_cast<double>(engine_() % 10000) / 10000; }
    bool chance(double p) { return share(1) < p; }

  private:
    std::mt19937_64 engine_;
};

}  // namespace banyan::topo::bench
