// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/checks.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "sweep/bandwidth.hpp"
#include "sweep/baseline_figures.hpp"
#include "sweep/clock.hpp"
#include "sweep/disks.hpp"
#include "sweep/gpus.hpp"
#include "sweep/links.hpp"
#include "sweep/memory.hpp"
#include "sweep/mounts.hpp"
#include "sweep/pcie.hpp"
#include "sweep/topology.hpp"

namespace banyan::sweep {
namespace {

/// `judge` of what was looked at; of what could not be, the error.
template <class T, class Judge>
finding judged(const result<T>& looked, Judge judge) {
    return looked ? judge(*looked) : unknown(looked.error());
}

/// Against the baseline node's figures, too.
finding held(const place& p, finding f) {
    hold_to(f, p.asked.baseline, p.asked.baseline_percent);
    return f;
}

std::vector<judged_look> links_looks(const place& p) {
    return {[p] {
        return judged(read_ports(p.root), [&](const auto& ports) {
            return judge_ports(ports, p.asked.links, p.asked.link_rate);
        });
    }};
}

std::vector<judged_look> mounts_looks(const place& p) {
    std::vector<judged_look> out;
    for (const auto& point : p.asked.mounts)
        out.emplace_back([root = p.root, point] { return check_mount(root, point); });
    return out;
}

std::vector<judged_look> disks_looks(const place& p) {
    const disk_limits limits{p.asked.disk_fill, p.asked.disk_inodes};
    std::vector<judged_look> out;
    for (const auto& folder : p.asked.disks)
        out.emplace_back([root = p.root, limits, folder] { return check_disk(root, folder, limits); });
    return out;
}

std::vector<judged_look> clock_looks(const place& p) {
    return {[limit = p.asked.clock] {
        return judged(look_at_clock(), [&](const auto& view) { return judge_clock(view, limit); });
    }};
}

std::vector<judged_look> memory_looks(const place& p) {
    return {[p] {
        return judged(available_memory(p.root),
                      [&](auto bytes) { return judge_memory(bytes, p.asked.memory); });
    }};
}

std::vector<judged_look> gpus_looks(const place& p) {
    return {[p] { return judge_gpus(look_at_gpus(p.root, open_nvml()), p.asked.gpus, p.asked.gpu_ecc); }};
}

std::vector<judged_look> topology_looks(const place& p) {
    return {[baseline = p.asked.topology] { return check_topology(baseline); }};
}

std::vector<judged_look> bandwidth_looks(const place& p) {
    return {[p] { return held(p, check_bandwidth(p.root, p.asked.bandwidth, p.measure_for)); }};
}

std::vector<judged_look> pcie_looks(const place& p) {
    return {[p] {
        const auto turn = take_turn(p.root);
        if (!turn) return unknown(turn.error());
        return held(p, check_copies(open_copier(p.cuda, p.root, p.gpu_bytes), p.asked.pcie, p.measure_for));
    }};
}

std::vector<judged_look> allreduce_looks(const place& p) {
    return {[p] {
        const auto judge = [&](const result<reduction>& r) {
            return judge_allreduce(r, p.asked.allreduce, p.asked.gpus);
        };
        if (p.asked.gpus == 1) return judge(reduction{1});
        const auto turn = take_turn(p.root);
        if (!turn) return unknown(turn.error());
        const auto made = measure_allreduce(p.cuda, p.nccl, p.gpu_bytes, p.measure_for);
        return made && made->gpus == 1 ? judge(made) : held(p, judge(made));
    }};
}

constexpr std::array checks{
    check{"links", false, false, [](const settings& s) { return s.links > 0; }, links_looks},
    check{"gpus", false, false, [](const settings& s) { return s.gpus > 0; }, gpus_looks},
    check{"topology", false, false, [](const settings& s) { return !s.topology.empty(); }, topology_looks},
    check{"mounts", false, false, [](const settings& s) { return !s.mounts.empty(); }, mounts_looks},
    check{"disks", false, false, [](const settings& s) { return !s.disks.empty(); }, disks_looks},
    check{"clock", false, false, [](const settings& s) { return s.clock.count() > 0; }, clock_looks},
    check{"memory", true, false, [](const settings& s) { return s.memory > 0; }, memory_looks},
    check{"bandwidth", true, true, [](const settings& s) { return s.bandwidth > 0; }, bandwidth_looks},
    check{"pcie", true, true, [](const settings& s) { return s.pcie > 0; }, pcie_looks},
    check{"allreduce", true, true, [](const settings& s) { return s.allreduce > 0; }, allreduce_looks},
};

}  // namespace

std::span<const check> all_checks() { return checks; }

result<std::vector<check>> choose(const settings& s, const std::vector<std::string>& only) {
    std::vector<std::string> known;
    for (const auto& c : checks) known.emplace_back(c.name);
    for (const auto& name : only) {
        const auto it = std::ranges::find(checks, name, &check::name);
        if (it == checks.end())
            return fail(errc::invalid_input, fmt::format("there is no check \"{}\"", printable(name)),
                        fmt::format("the checks are {}", fmt::join(known, ", ")));
        if (!it->asked(s))
            return fail(errc::invalid_input, fmt::format("the check {} has nothing to go by", name),
                        fmt::format("set {} in [sweep] of banyan.conf", name));
    }
    std::vector<check> out;
    for (const auto& c : checks)
        if (c.asked(s) && (only.empty() || std::ranges::find(only, c.name) != only.end())) out.push_back(c);
    if (out.empty())
        return fail(errc::invalid_input, "there is nothing to look at",
                    fmt::format("set keys in [sweep] of banyan.conf: {}", fmt::join(known, ", ")));
    return out;
}

}  // namespace banyan::sweep
