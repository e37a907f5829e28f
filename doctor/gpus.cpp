// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/gpus.hpp"

#include <algorithm>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/child.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "doctor/site.hpp"
#include "hardware/loaded.hpp"
#include "hardware/small_file.hpp"

namespace banyan::doctor {
namespace {

using hardware::gpu_answers;
using nlohmann::json;

/// What `work` finds in a process of its own.
result<json> apart(const gpu_place& where, const std::function<result<json>()>& work) {
    const auto say = [&] {
        const auto found = work();
        return (found ? *found
                      : json{{"error", found.error().text()}, {"code", static_cast<int>(found.error().code)}})
            .dump(-1, ' ', false, json::error_handler_t::replace);
    };
    BANYAN_TRY(const auto text, ask_forked(say, banyan::clock::now() + where.patience));
    auto told = json::parse(text, nullptr, false);
    if (!told.is_object()) return fail(errc::unavailable, "a look at the GPUs ended without an answer");
    const json_fields in(told);
    if (!in.has("error")) return told;
    BANYAN_TRY(auto why, in.text("error"));
    return fail(static_cast<errc>(in.number("code", 255).value_or(0)), std::move(why));
}

result<gpu_answers> ask_nvml(const gpu_place& where) {
    const auto ask = [&]() -> result<json> {
        BANYAN_TRY(const auto library, hardware::open_nvml(where.nvml));
        BANYAN_TRY(const auto all, hardware::ask_all(*library));
        return hardware::to_json(all);
    };
    BANYAN_TRY(const auto told, apart(where, ask));
    return hardware::gpu_answers_from(told);
}

/// NVIDIA's cards on the bus that compute or draw.
result<std::size_t> count_on_bus(const std::filesystem::path& root) {
    const auto folder = root / "sys/bus/pci/devices";
    std::error_code failed;
    std::filesystem::directory_iterator it(folder, failed);
    // A machine without such a bus has no such card.
    if (failed && std::filesystem::exists(root / "sys/bus") && !std::filesystem::exists(folder)) return 0;
    std::size_t out = 0;
    for (; !failed && it != std::filesystem::directory_iterator(); it.increment(failed)) {
        const auto vendor = hardware::read_small(it->path() / "vendor");
        const auto kind = hardware::read_small(it->path() / "class");
        if (!vendor || !kind) return std::unexpected((vendor ? kind : vendor).error());
        if (vendor->starts_with("0x10de") && kind->starts_with("0x03")) ++out;
    }
    if (failed) return fail(errc::unavailable, fmt::format("{}: {}", folder.string(), failed.message()));
    return out;
}

finding judge_health(const gpu_answers& gpus) {
    const char* const why = "a rank that gets such a GPU fails, and its job with it";
    std::vector<std::string> names;
    for (const auto& g : gpus) {
        if (!g) return {verdict::unknown, "GPUs", g.error().text(), why, "nvidia-smi"};
        if (!g->usable())
            return {verdict::wrong, "GPUs",
                    fmt::format("GPU {} {}", g->bus_id, g->lost ? "fell off the bus" : "wants a reset"), why,
                    "docs/runbook/gpu-reset.md"};
        names.push_back(g->bus_id);
    }
    return fine("GPUs", fmt::format("{}: {}", names.size(), fmt::join(names, ", ")));
}

finding judge_driver(const std::filesystem::path& root) {
    const auto text = hardware::read_small(root / "proc/driver/nvidia/version");
    if (!text)
        return {verdict::unknown, "GPU driver", text.error().text(), "its release is not known",
                "modinfo nvidia"};
    const std::string_view line(*text);
    for (const auto word : split(line.substr(0, line.find('\n')), ' '))
        if (std::ranges::count(word, '.') >= 1 &&
            word.find_first_not_of("0123456789.") == std::string_view::npos)
            return fine("GPU driver", std::string(word));
    return {verdict::unknown, "GPU driver", "its version file has no version", "its release is not known",
            "modinfo nvidia"};
}

finding judge_nccl(const gpu_place& where) {
    const auto told = apart(where, [&]() -> result<json> {
        void* const library = ::dlopen(where.nccl.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) return json{{"missing", true}};
        int (*ask)(int*) = nullptr;
        int version = 0;
        if (!hardware::find_function(library, "ncclGetVersion", ask) || ask(&version) != 0)
            return fail(errc::unavailable, where.nccl + " does not tell its version");
        return json{{"version", version}};
    });
    const char* const why = "programs bring their own; banyan-sweep's allreduce goes by this one";
    if (!told) return {verdict::unknown, "NCCL", told.error().text(), why, "reinstall it"};
    if (told->contains("missing"))
        return {verdict::note, "NCCL", where.nccl + " is not where the loader looks", why,
                "a package of NCCL, or no allreduce in [sweep]"};
    const auto v = json_fields(*told).number("version", 10'000'000).value_or(0);
    return fine("NCCL", fmt::format("{}.{}.{}", v / 10'000, v / 100 % 100, v % 100));
}

finding judge_copies(const gpu_place& where, const gpu_answers& gpus) {
    const char* const subject = "checkpoints from GPUs";
    const char* const why = "no step of a job whose state is on GPUs is saved";
    const auto busy = std::ranges::find_if(gpus, [](const auto& g) { return g && g->in_use; });
    if (busy != gpus.end())
        return {verdict::note, subject,
                fmt::format("not tried: a program computes on GPU {}", (*busy)->bus_id),
                "a try takes memory of each GPU", "banyan-doctor when no job has the node"};
    const auto told = apart(where, [&]() -> result<json> {
        BANYAN_TRY(const auto count, try_copies(where.cuda));
        return json{{"count", count}};
    });
    if (told)
        return fine(subject, fmt::format("a copy to and from each of {} came back as it went",
                                         json_fields(*told).number("count", 65'536).value_or(0)));
    const bool broken = told.error().code == errc::conflict || told.error().code == errc::not_found;
    return {broken ? verdict::wrong : verdict::unknown, subject, told.error().text(), why,
            "banyan-sweep --only pcie"};
}

}  // namespace

findings look_at_gpus(const gpu_place& where) {
    const auto nvml = ask_nvml(where);
    const auto on_bus = count_on_bus(where.root);
    if (nvml && !nvml->empty()) {
        auto health = judge_health(*nvml);
        if (health.is == verdict::fine && on_bus && *on_bus > nvml->size())
            health = {verdict::wrong, "GPUs",
                      fmt::format("{} on the bus, and NVIDIA's library sees {}", *on_bus, nvml->size()),
                      "no rank can use the others", "dmesg | grep NVRM; nvidia-smi says more"};
        return {health, judge_driver(where.root), judge_nccl(where), judge_copies(where, *nvml)};
    }
    if (on_bus && *on_bus == 0) return {fine("GPUs", "none of NVIDIA's is on this host's bus")};
    if (!on_bus)
        return {{verdict::unknown, "GPUs", on_bus.error().text(), "whether ranks can use GPUs is not known",
                 "nvidia-smi"}};
    const auto what = nvml ? std::string("NVIDIA's library sees none") : nvml.error().text();
    return {{nvml || nvml.error().code == errc::conflict ? verdict::wrong : verdict::unknown, "GPUs",
             fmt::format("{} on the bus; {}", *on_bus, what), "no rank can use them",
             "modprobe nvidia; nvidia-smi says more"}};
}

findings check_gpus(const site& s) { return s.is.compute ? look_at_gpus({}) : findings(); }

}  // namespace banyan::doctor
