// SPDX-License-Identifier: BSD-3-Clause
//
// From looks at the GPUs to faults, of the kinds that the driver's Xid lines give where NVIDIA says the same
// with both; else symptoms of the GPU. What a GPU showed when it was first seen is history. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fault/sources/kernel_fault.hpp"
#include "hardware/gpus.hpp"

namespace banyan::fault {

class gpu_facts {
  public:
    struct outcome {
        std::vector<kernel_fault> faults;   ///< `message`: what people read
        std::set<std::string> blind;        ///< what could not be looked at, each as a sentence
        std::vector<std::string> standing;  ///< was so when the GPU was first seen: no event
        bool again_soon = false;            ///< something is believed when the next look shows it, too
    };

    outcome after_look(std::span<const result<hardware::gpu_health>> gpus);

  private:
    /// True in one look may be a reset that an administrator does; in two it is a fact. Told once.
    struct doubted {
        int looks = 0;
        /// Whether it is to be told now.
        bool after(bool is);
        bool waits() const { return looks == 1; }
    };
    struct card {
        hardware::gpu_health before;
        doubted lost, needs_reset, slowed, missing;
        std::vector<doubted> links;  // down that were active
        bool shown = false;
    };

    void after_card(const std::string& bdf, card& c, const hardware::gpu_health& now, outcome& out);
    void after_memory(const std::string& bdf, const card& c, const hardware::gpu_health& now, outcome& out);
    void after_nameless(std::span<const hardware::gpu_health> nameless, outcome& out);

    std::map<std::string, card> cards_;
};

}  // namespace banyan::fault
