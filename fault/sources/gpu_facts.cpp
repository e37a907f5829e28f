// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/gpu_facts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/catalog/symptom.hpp"
#include "fault/event.hpp"

namespace banyan::fault {

using catalog::symptom;
using hardware::gpu_health;

namespace {

constexpr std::size_t most_cards = 64;

kernel_fault of(const std::string& bdf, fault_kind kind, std::uint32_t code, const std::string& words) {
    kernel_fault out;
    out.kind = kind;
    out.code = code;
    out.bdf = bdf;
    if (kind == fault_kind::symptom) out.device = bdf;
    out.message = fmt::format("NVML: GPU {}: {}", bdf, words);
    return out;
}

kernel_fault of(const std::string& bdf, symptom code, const std::string& words) {
    return of(bdf, fault_kind::symptom, static_cast<std::uint32_t>(code), words);
}

kernel_fault xid(const std::string& bdf, std::uint32_t code, const std::string& words) {
    return of(bdf, fault_kind::xid, code, words);
}

kernel_fault lost(const std::string& bdf) {
    return of(bdf, fault_kind::bus_loss, 79, "the driver says that it is lost");
}

kernel_fault reset_wanted(const std::string& bdf) {
    auto out = xid(bdf, 154, "the driver says that it needs a reset");
    out.recovery = static_cast<std::uint32_t>(recovery::gpu_reset);
    return out;
}

}  // namespace

bool gpu_facts::doubted::after(bool is) {
    looks = is ? std::min(looks + 1, 3) : 0;
    return looks == 2;
}

// What is counted does not say whether the errors were contained, as Xid 94 and 95 do: a person looks.
void gpu_facts::after_memory(const std::string& bdf, const card& c, const gpu_health& now, outcome& out) {
    const auto& before = c.before;
    if (now.ecc_unknown.empty() && before.ecc_unknown.empty() && now.uncorrected > before.uncorrected)
        out.faults.push_back(
            of(bdf, symptom::gpu_memory,
               fmt::format("{} memory errors more that were not corrected, {} since the driver was loaded",
                           now.uncorrected - before.uncorrected, now.uncorrected)));
    if (now.remap_pending && !before.remap_pending)
        out.faults.push_back(xid(bdf, 63, "a bad memory row is replaced at the next reset"));
    if (now.remap_failed && !before.remap_failed)
        out.faults.push_back(xid(bdf, 64, "a bad memory row could not be replaced"));
}

void gpu_facts::after_card(const std::string& bdf, card& c, const gpu_health& now, outcome& out) {
    if (c.lost.after(now.lost)) out.faults.push_back(lost(bdf));
    if (c.needs_reset.after(now.needs_reset)) out.faults.push_back(reset_wanted(bdf));
    out.again_soon |= c.lost.waits() || c.needs_reset.waits();
    if (!now.usable()) return;  // it tells nothing else
    after_memory(bdf, c, now, out);
    if (c.slowed.after(now.slowed))
        out.faults.push_back(
            of(bdf, symptom::gpu_slow, "the hardware takes its clocks down: heat, or power"));
    out.again_soon |= c.slowed.waits();
    c.links.resize(now.links.size());
    for (std::size_t n = 0; n < now.links.size(); ++n) {
        const bool was = n < c.before.links.size() && c.before.links[n];
        const bool down = !now.links[n] && (was || c.links[n].looks > 0);
        if (c.links[n].after(down)) {
            auto f = xid(bdf, 74, fmt::format("NVLink {} is down", n));
            f.link = static_cast<int>(n);
            out.faults.push_back(std::move(f));
        }
        out.again_soon |= c.links[n].waits();
    }
    c.before = now;
}

// A card that is lost may not tell where it is; then it is one of those that are not there. Where it could be
// one of several, none is accused.
void gpu_facts::after_nameless(std::span<const gpu_health> nameless, outcome& out) {
    std::vector<std::string> absent;
    for (const auto& [bdf, c] : cards_)
        if (!c.shown) absent.push_back(bdf);
    const bool alike = std::ranges::all_of(nameless, &gpu_health::lost) ||
                       std::ranges::all_of(nameless, &gpu_health::needs_reset);
    if (!nameless.empty() && (!alike || nameless.size() != absent.size())) {
        for (const auto& g : nameless)
            out.blind.insert(fmt::format("GPU {} is lost or needs a reset, and does not tell which it is",
                                         printable(g.bus_id)));
        return;
    }
    for (const auto& bdf : absent) {
        auto& c = cards_[bdf];
        if (!nameless.empty()) {
            after_card(bdf, c, nameless.front(), out);
            continue;
        }
        if (c.missing.after(true))
            out.faults.push_back(of(bdf, symptom::gpu_missing, "the driver does not show it any more"));
        out.again_soon |= c.missing.waits();
    }
}

gpu_facts::outcome gpu_facts::after_look(std::span<const result<gpu_health>> gpus) {
    outcome out;
    if (gpus.empty() && !cards_.empty()) {
        out.blind.insert("the driver shows no GPU any more");
        return out;
    }
    for (auto& [bdf, c] : cards_) c.shown = false;
    std::vector<gpu_health> nameless;
    bool unasked = false;
    for (const auto& g : gpus) {
        if (!g) {
            out.blind.insert(g.error().text());
            unasked = true;
            continue;
        }
        const auto place = take_bdf(g->bus_id);
        if (!place) {
            nameless.push_back(*g);
            continue;
        }
        const auto& bdf = place->first;
        if (!cards_.contains(bdf) && cards_.size() >= most_cards) continue;
        auto [at, fresh] = cards_.try_emplace(bdf);
        auto& c = at->second;
        c.shown = true;
        c.missing = {};
        if (!g->ecc_unknown.empty() && fresh)
            out.standing.push_back(fmt::format("GPU {}: memory errors: {}", bdf, printable(g->ecc_unknown)));
        if (fresh) {
            if (g->uncorrected > 0)
                out.standing.push_back(
                    fmt::format("GPU {}: {} memory errors that were not corrected", bdf, g->uncorrected));
            if (g->remap_failed)
                out.standing.push_back(fmt::format("GPU {}: a bad memory row could not be replaced", bdf));
            c.before = *g;
        }
        after_card(bdf, c, *g, out);
    }
    // One that could not be asked may be any that is not shown.
    if (!unasked) after_nameless(nameless, out);
    return out;
}

}  // namespace banyan::fault
