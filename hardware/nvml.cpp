// SPDX-License-Identifier: BSD-3-Clause
//
// NVIDIA's management library, by dlopen: banyan is built, and runs, where there is none. The few functions
// and numbers that are used are those of nvml.h, which has kept them since driver 450.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hardware/gpus.hpp"
#include "hardware/loaded.hpp"

namespace banyan::hardware {
namespace {

using device = void*;
using code = int;

constexpr code success = 0, not_supported = 3, not_asked = -1, driver_not_loaded = 9, gpu_is_lost = 15,
               reset_required = 16, more_than_room = 7;
constexpr int uncorrected_errors = 1, since_driver_load = 0;
/// Clocks that the hardware takes down: in general, for heat, by the power supply's word.
constexpr unsigned long long hardware_slowdown = 0x08 | 0x40 | 0x80;
constexpr unsigned nvml_links = 36;  // NVML_NVLINK_MAX_LINKS of nvml.h 13

/// nvmlPciInfo_t: the last of it is the bus id as newer releases write it.
struct pci_info {
    std::array<char, 16> legacy_bus_id;
    unsigned domain, bus, device_number, device_and_vendor, subsystem;
    std::array<char, 32> bus_id;
};

constexpr unsigned char fabric_not_supported = 0, fabric_completed = 3;

/// nvmlGpuFabricInfo_t.
struct fabric_info {
    std::array<unsigned char, 16> cluster;
    code status;
    unsigned clique;
    unsigned char state;
};

/// nvmlGpuFabricInfo_v2_t: every driver that has the function with a version takes it.
struct fabric_info_v2 {
    unsigned version;
    fabric_info is;
    unsigned health;
};
static_assert(sizeof(fabric_info) == 28 && sizeof(fabric_info_v2) == 36);
constexpr unsigned fabric_version = sizeof(fabric_info_v2) | 2u << 24;

/// none: it does not tell, or not yet.
std::optional<std::string> domain_of(const fabric_info& f) {
    if (f.state == fabric_not_supported) return "";
    if (f.state != fabric_completed || f.status != success) return std::nullopt;
    const auto& u = f.cluster;
    // A GPU of one node alone is registered with no cluster.
    if (std::ranges::all_of(u, [](auto byte) { return byte == 0; })) return "";
    return fmt::format(
        "{:02x}-{:02x}-{:02x}-{:02x}-{:02x}.{}", fmt::join(u.begin(), u.begin() + 4, ""),
        fmt::join(u.begin() + 4, u.begin() + 6, ""), fmt::join(u.begin() + 6, u.begin() + 8, ""),
        fmt::join(u.begin() + 8, u.begin() + 10, ""), fmt::join(u.begin() + 10, u.end(), ""), f.clique);
}

struct nvml_functions {
    code (*init)() = nullptr;
    code (*count)(unsigned*) = nullptr;
    code (*by_index)(unsigned, device*) = nullptr;
    code (*pci)(device, pci_info*) = nullptr;
    code (*ecc_errors)(device, int, int, unsigned long long*) = nullptr;
    const char* (*text)(code) = nullptr;
    /// Newer than the others, or not of every card: may be missing.
    code (*remapped)(device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
    code (*slowdown)(device, unsigned long long*) = nullptr;
    code (*link_state)(device, unsigned, int*) = nullptr;
    code (*processes)(device, unsigned*, void*) = nullptr;
    code (*fabric)(device, fabric_info*) = nullptr;
    code (*fabric_by_version)(device, fabric_info_v2*) = nullptr;
};

class nvml final : public gpu_library {
  public:
    explicit nvml(const nvml_functions& f) : f_(f) {}

    result<std::uint32_t> count() override {
        unsigned n = 0;
        if (const code why = f_.count(&n); why != success) return failed("cannot count the GPUs", why);
        return n;
    }

    result<gpu_health> health(std::uint32_t index) override {
        gpu_health out;
        out.bus_id = fmt::format("number {}", index);
        device d = nullptr;
        if (const code why = f_.by_index(index, &d); why != success) {
            out.lost = why == gpu_is_lost;
            out.needs_reset = why == reset_required;
            if (!out.usable()) return out;
            return failed(fmt::format("cannot ask GPU {}", out.bus_id), why);
        }
        pci_info pci{};
        if (f_.pci(d, &pci) == success)
            out.bus_id = std::string(pci.bus_id.data(), ::strnlen(pci.bus_id.data(), pci.bus_id.size()));
        unsigned long long errors = 0;
        const code why = f_.ecc_errors(d, uncorrected_errors, since_driver_load, &errors);
        out.lost = why == gpu_is_lost;
        out.needs_reset = why == reset_required;
        out.uncorrected = why == success ? errors : 0;
        if (why != success && out.usable()) out.ecc_unknown = f_.text(why);
        if (out.usable()) ask_more(d, out);
        return out;
    }

  private:
    void ask_more(device d, gpu_health& out) const {
        unsigned corrected = 0, uncorrected = 0, pending = 0, failure = 0;
        if (f_.remapped && f_.remapped(d, &corrected, &uncorrected, &pending, &failure) == success) {
            out.remap_failed = failure != 0;
            out.remap_pending = pending != 0;
        }
        unsigned long long reasons = 0;
        if (f_.slowdown && f_.slowdown(d, &reasons) == success)
            out.slowed = (reasons & hardware_slowdown) != 0;
        unsigned room = 0;
        out.in_use = f_.processes && f_.processes(d, &room, nullptr) == more_than_room;
        int active = 0;
        for (unsigned n = 0; f_.link_state && n < nvml_links && f_.link_state(d, n, &active) == success; ++n)
            out.links.push_back(active != 0);
        out.nvlink_domain = ask_domain(d);
    }

    std::optional<std::string> ask_domain(device d) const {
        fabric_info_v2 told{};
        told.version = fabric_version;
        if (f_.fabric_by_version) {
            const code why = f_.fabric_by_version(d, &told);
            if (why == success) return domain_of(told.is);
            if (why == not_supported) return "";
        }
        const code why = f_.fabric ? f_.fabric(d, &told.is) : not_asked;
        if (why == success) return domain_of(told.is);
        return why == not_supported ? std::optional(std::string()) : std::nullopt;
    }

    std::unexpected<error> failed(const std::string& doing, code why) const {
        return fail(errc::unavailable, fmt::format("{}: NVIDIA's library says {}", doing, f_.text(why)));
    }

    nvml_functions f_;
};

}  // namespace

result<std::unique_ptr<gpu_library>> open_nvml(const std::string& name) {
    // Never closed: the process is a look, which ends soon.
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(errc::not_found, fmt::format("NVIDIA's library {} is not on this node", name),
                    "it comes with the driver");
    nvml_functions f;
    if (!find_function(library, "nvmlInit_v2", f.init) ||
        !find_function(library, "nvmlDeviceGetCount_v2", f.count) ||
        !find_function(library, "nvmlDeviceGetHandleByIndex_v2", f.by_index) ||
        !find_function(library, "nvmlDeviceGetPciInfo_v3", f.pci) ||
        !find_function(library, "nvmlDeviceGetTotalEccErrors", f.ecc_errors) ||
        !find_function(library, "nvmlErrorString", f.text))
        return fail(errc::not_found,
                    fmt::format("{} lacks functions that it has had since driver 450", name));
    find_function(library, "nvmlDeviceGetRemappedRows", f.remapped);
    find_function(library, "nvmlDeviceGetCurrentClocksThrottleReasons", f.slowdown);
    find_function(library, "nvmlDeviceGetNvLinkState", f.link_state);
    // How many there are is the same for each form of it.
    for (const char* form :
         {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
          "nvmlDeviceGetComputeRunningProcesses"})
        if (!f.processes) find_function(library, form, f.processes);
    find_function(library, "nvmlDeviceGetGpuFabricInfo", f.fabric);
    find_function(library, "nvmlDeviceGetGpuFabricInfoV", f.fabric_by_version);
    if (const code why = f.init(); why != success)
        return fail(why == driver_not_loaded ? errc::conflict : errc::unavailable,
                    fmt::format("NVIDIA's library does not start: {}", f.text(why)));
    return std::make_unique<nvml>(f);
}

}  // namespace banyan::hardware
