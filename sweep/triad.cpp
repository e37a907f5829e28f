// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <sched.h>

#include "sweep/bandwidth.hpp"

namespace banyan::sweep {
namespace {

using tick = std::chrono::steady_clock;

void pin_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)::sched_setaffinity(0, sizeof one, &one);  // one that went offline just now: anywhere else
}

struct arrays {
    explicit arrays(std::size_t n)
        : a(std::make_unique_for_overwrite<double[]>(n)),
          b(std::make_unique_for_overwrite<double[]>(n)),
          c(std::make_unique_for_overwrite<double[]>(n)) {
        for (std::size_t i = 0; i < n; ++i)
            a[i] = 0, b[i] = 1, c[i] = 2;  // pages come to the CPU that is first
    }
    std::unique_ptr<double[]> a, b, c;
};

void triad(double* __restrict a, const double* __restrict b, const double* __restrict c, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
}

/// What all threads share. The first of them takes the time, between barriers.
struct bench {
    bench(std::size_t threads, std::size_t numbers, tick::time_point end)
        : together(static_cast<std::ptrdiff_t>(threads)), n(numbers), until(end) {}

    void work(int cpu, bool takes_time) {
        pin_to(cpu);
        std::unique_ptr<arrays> mine;
        try {
            mine = std::make_unique<arrays>(n);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        for (bool more = true; more;) {
            together.arrive_and_wait();
            if (failed) return;
            const auto begin = tick::now();
            together.arrive_and_wait();
            triad(mine->a.get(), mine->b.get(), mine->c.get(), n);
            together.arrive_and_wait();
            if (takes_time) {
                const auto now = tick::now();
                best = std::min(best, now - begin);
                enough = now >= until;
            }
            together.arrive_and_wait();
            more = !enough;
        }
    }

    std::barrier<> together;
    std::size_t n;
    tick::time_point until;
    tick::duration best = tick::duration::max();
    std::atomic<bool> failed = false, enough = false;
};

}  // namespace

result<double> measure_triad(std::size_t numbers, tick::duration time) {
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0 || numbers == 0)
        return fail(errc::exhausted, "there is no CPU or no memory to measure with");
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
    bench all(cpus.size(), numbers, tick::now() + time);
    std::vector<std::jthread> threads;
    for (const int cpu : cpus) try {
            threads.emplace_back([&all, cpu, first = cpu == cpus.front()] { all.work(cpu, first); });
        } catch (const std::system_error&) {
            all.failed = true;
            all.together.arrive_and_drop();  // for the one that could not be started
        }
    threads.clear();
    if (all.failed) return fail(errc::exhausted, "there are not enough threads or memory to measure with");
    const auto seconds = std::chrono::duration<double>(all.best).count();
    const auto bytes = 3.0 * sizeof(double) * static_cast<double>(numbers) * static_cast<double>(cpus.size());
    return bytes / seconds;
}

}  // namespace banyan::sweep
