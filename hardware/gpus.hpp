// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs, as NVIDIA's management library shows them. The library asks the cards and may hang or crash with
// one: this is for a process of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::hardware {

struct gpu_health {
    std::string bus_id{};           ///< "00000000:3B:00.0"; "number 3" where the card does not tell
    bool lost = false;              ///< fell off the bus
    bool needs_reset = false;       ///< by the driver's word, before it can be used again
    std::uint64_t uncorrected = 0;  ///< memory errors since the driver was loaded
    bool remap_failed = false;      ///< a row of its memory is broken, and there is none to take its place
    bool remap_pending = false;     ///< a broken row is replaced at the next reset
    bool in_use = false;            ///< a program computes on it; false where the card does not tell
    bool slowed = false;            ///< its clocks are down since it is too hot, or power is short
    std::vector<bool> links{};      ///< NVLinks, by number: whether each is active
    /// "UUID.clique" of the NVLink fabric that it shares with GPUs of other nodes, as the driver has it
    /// registered; empty: it is in none; none: it does not tell.
    std::optional<std::string> nvlink_domain{};
    std::string ecc_unknown{};  ///< why the errors could not be asked for; empty: they were

    bool usable() const { return !lost && !needs_reset; }
};

/// Where GPUs are asked for. The real one is NVIDIA's library; the tests have others.
class gpu_library {
  public:
    virtual ~gpu_library() = default;
    virtual result<std::uint32_t> count() = 0;
    virtual result<gpu_health> health(std::uint32_t index) = 0;
};

inline constexpr const char* nvml_library = "libnvidia-ml.so.1";

/// By dlopen. not_found: there is none on this node. conflict: the driver is not loaded.
result<std::unique_ptr<gpu_library>> open_nvml(const std::string& library = nvml_library);

/// "01234567-89ab-cdef-0123-456789abcdef.1": lower case, the clique a number of 32 bits.
bool is_nvlink_domain(std::string_view text);

/// Of each GPU, or why it could not be asked.
using gpu_answers = std::vector<result<gpu_health>>;
result<gpu_answers> ask_all(gpu_library& library);

// What one process writes and another reads.
nlohmann::json to_json(const gpu_answers& gpus);
result<gpu_answers> gpu_answers_from(const nlohmann::json& told);

}  // namespace banyan::hardware
