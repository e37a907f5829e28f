// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/gpus.hpp"

#include <fmt/format.h>

namespace banyan::sweep {
namespace {

constexpr std::uint32_t most_gpus = 4096;

result<std::uint32_t> count_in_proc(const std::filesystem::path& root, const error& library) {
    const auto folder = root / "proc/driver/nvidia/gpus";
    std::error_code failed;
    std::uint32_t count = 0;
    for (auto it = std::filesystem::directory_iterator(folder, failed);
         !failed && it != std::filesystem::directory_iterator() && count < most_gpus; it.increment(failed))
        ++count;
    if (failed)
        return fail(errc::unavailable,
                    fmt::format("{}, and {}: {}", library.what, folder.string(), failed.message()),
                    library.hint);
    return count;
}

std::string broken(const gpu_health& g, bool ecc) {
    if (!g.usable()) return fmt::format("GPU {} is lost, or waits for a reset", g.bus_id);
    if (ecc && g.uncorrected > 0)
        return fmt::format("GPU {} has {} memory errors that were not corrected", g.bus_id, g.uncorrected);
    if (ecc && g.remap_failed)
        return fmt::format("GPU {} cannot replace a broken row of its memory", g.bus_id);
    return {};
}

finding judge_each(const gpu_view& v, bool ecc) {
    finding out;
    for (const auto& g : v.each) {
        if (!g) {
            add(out, unknown(g.error()));
            continue;
        }
        if (auto why = broken(*g, ecc); !why.empty())
            add(out, unfit(std::move(why)));
        else if (ecc && !g->ecc_unknown.empty())
            add(out, unknown({errc::unavailable,
                              fmt::format("memory errors of GPU {}: {}", g->bus_id, g->ecc_unknown),
                              "gpu_ecc = false where the GPUs have no ECC"}));
    }
    return out;
}

}  // namespace

gpu_view look_at_gpus(const std::filesystem::path& root, result<std::unique_ptr<gpu_library>> library) {
    gpu_view out;
    if (!library) {
        out.without_health = library.error().what;
        out.count = library.error().code == errc::conflict ? std::unexpected(library.error())
                                                           : count_in_proc(root, library.error());
        return out;
    }
    auto all = hardware::ask_all(**library);
    if (!all) {
        out.count = std::unexpected(all.error());
        return out;
    }
    out.count = static_cast<std::uint32_t>(all->size());
    out.each = std::move(*all);
    return out;
}

finding judge_gpus(const gpu_view& v, std::uint32_t wanted, bool ecc) {
    if (!v.count)
        return v.count.error().code == errc::conflict ? unfit(v.count.error().text())
                                                      : unknown(v.count.error());
    const auto what = fmt::format("{} GPU{}, expected {}", *v.count, *v.count == 1 ? "" : "s", wanted);
    auto out = judge_each(v, ecc);
    if (ecc && !v.without_health.empty())
        add(out, unknown({errc::unavailable, "memory errors: " + v.without_health, {}}));
    add(out, *v.count < wanted ? unfit(what) : fit(what));
    out.figures["gpus"] = *v.count;
    return out;
}

}  // namespace banyan::sweep
