// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/pcie.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include <fmt/format.h>
#include <sched.h>

#include "common/text.hpp"
#include "hardware/cuda.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {
namespace {

using hardware::cuda;
using tick = std::chrono::steady_clock;

constexpr double giga = 1e9;

/// The memory that the driver pins is that of the CPU which asks for it.
void go_near(const std::filesystem::path& root, const std::string& bus_id) {
    const auto list = hardware::read_small(root / "sys/bus/pci/devices" / bus_id / "local_cpulist");
    if (!list) return;  // slower, perhaps: that is then what is measured
    cpu_set_t near;
    CPU_ZERO(&near);
    for (const auto part : split(*list, ',')) {
        const auto dash = part.find('-');
        const auto first = parse_number(part.substr(0, dash), CPU_SETSIZE - 1);
        const auto last =
            dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1), CPU_SETSIZE - 1);
        if (!first || !last) return;
        for (auto cpu = *first; cpu <= *last; ++cpu) CPU_SET(cpu, &near);
    }
    if (CPU_COUNT(&near) > 0) (void)::sched_setaffinity(0, sizeof near, &near);
}

std::uint64_t number_at(std::size_t at, std::uint64_t seed) {
    auto x = (at + 1) * 0x9e3779b97f4a7c15ull + seed;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ull;
    return x ^ (x >> 29);
}

/// Bytes a second of the best of as many copies as `time` has room for, two at least.
result<double> best_of(const std::function<result<void>()>& copy, std::size_t copied, tick::duration time) {
    const auto until = tick::now() + time;
    auto best = tick::duration::max();
    for (int round = 0; round < 2 || tick::now() < until; ++round) {
        const auto begin = tick::now();
        BANYAN_CHECK(copy());
        best = std::min(best, tick::now() - begin);
    }
    return static_cast<double>(copied) / std::max(std::chrono::duration<double>(best).count(), 1e-9);
}

class driver_copier final : public copier {
  public:
    driver_copier(cuda by, std::filesystem::path root, std::size_t bytes)
        : by_(by), root_(std::move(root)), bytes_(bytes) {}
    std::uint32_t count() override { return by_.count(); }

    result<copy_rates> measure(std::uint32_t gpu, tick::duration time) override {
        copy_rates out;
        BANYAN_TRY(out.bus_id, by_.bus_id(gpu));
        go_near(root_, out.bus_id);
        BANYAN_CHECK(by_.use(gpu));
        BANYAN_TRY(void* const host, by_.allocate_on_host(bytes_));
        const std::unique_ptr<void, std::function<void(void*)>> kept(
            host, [this](void* memory) { by_.free_on_host(memory); });
        BANYAN_TRY(const auto there, by_.allocate(bytes_));
        auto* const numbers = static_cast<std::uint64_t*>(host);
        const auto count = bytes_ / sizeof(std::uint64_t);
        for (std::size_t i = 0; i < count; ++i) numbers[i] = number_at(i, gpu);
        BANYAN_TRY(out.to_gpu, best_of([&] { return by_.to_gpu(there, host, bytes_); }, bytes_, time / 2));
        std::memset(host, 0, bytes_);
        BANYAN_TRY(out.from_gpu,
                   best_of([&] { return by_.from_gpu(host, there, bytes_); }, bytes_, time / 2));
        for (std::size_t i = 0; i < count && !out.wrong; ++i) out.wrong = numbers[i] != number_at(i, gpu);
        return out;
    }

  private:
    cuda by_;
    std::filesystem::path root_;
    std::size_t bytes_;
};

/// An error of a GPU's own accuses the node; one of asking for it does not.
finding of_error(const error& e) { return e.code == errc::conflict ? unfit(e.text()) : unknown(e); }

}  // namespace

result<std::unique_ptr<copier>> open_copier(const std::string& library, const std::filesystem::path& root,
                                            std::size_t bytes) {
    BANYAN_TRY(auto by, cuda::open(library));
    return std::make_unique<driver_copier>(by, root, bytes);
}

finding judge_copies(const std::vector<result<copy_rates>>& each, std::uint32_t wanted) {
    finding out;
    const copy_rates* slowest = nullptr;
    for (const auto& one : each) {
        if (!one) {
            add(out, of_error(one.error()));
            continue;
        }
        const auto least = [](const copy_rates& r) { return std::min(r.to_gpu, r.from_gpu); };
        if (!slowest || least(*one) < least(*slowest)) slowest = &*one;
        if (one->wrong)
            add(out, unfit(fmt::format("GPU {}: what was copied there came back other", one->bus_id)));
        for (const auto& [way, rate] : {std::pair("to", one->to_gpu), std::pair("from", one->from_gpu)})
            if (rate < wanted * giga)
                add(out, unfit(fmt::format("GPU {}: {:.1f} GB/s {} it, expected {}", one->bus_id, rate / giga,
                                           way, wanted)));
        for (const auto& [name, rate] : {std::pair("pcie_to_gpu_bytes_per_second", one->to_gpu),
                                         std::pair("pcie_from_gpu_bytes_per_second", one->from_gpu)})
            if (const auto [at, fresh] = out.figures.try_emplace(name, rate); !fresh)
                at->second = std::min(at->second, rate);
    }
    if (each.empty()) return unknown({errc::unavailable, "CUDA has no GPU", "gpus in [sweep] counts them"});
    if (slowest)
        out.what.push_back(fmt::format("of {} GPUs the slowest is {}: {:.1f} GB/s to it, {:.1f} from it",
                                       each.size(), slowest->bus_id, slowest->to_gpu / giga,
                                       slowest->from_gpu / giga));
    return out;
}

finding check_copies(result<std::unique_ptr<copier>> by, std::uint32_t wanted, tick::duration time) {
    if (!by) return of_error(by.error());
    const auto count = (*by)->count();
    std::vector<result<copy_rates>> each;
    for (std::uint32_t gpu = 0; gpu < count; ++gpu) {
        fmt::print(stderr, "copying to GPU {}\n", gpu);
        (void)std::fflush(stderr);
        each.push_back((*by)->measure(gpu, time / count));
    }
    return judge_copies(each, wanted);
}

}  // namespace banyan::sweep
