// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/event_queue.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace banyan::fault {
namespace {

// What a port is, its newest line says, up or down: both are of one burst, so that none comes late.
bool tells_a_state(const kernel_fault& f) {
    using catalog::symptom;
    return f.kind == fault_kind::symptom && (f.code == static_cast<std::uint32_t>(symptom::hca_port_down) ||
                                             f.code == static_cast<std::uint32_t>(symptom::hca_port_up));
}

// Of all ports of a device: the kernel names none, its library does.
std::string states_of(const kernel_fault& f) { return fmt::format("port/{}/{}/", f.bdf, f.device); }

// All that a judgement may rest on: a line that weighs more, or speaks of another part, is another.
std::string sameness(const event& e) {
    const auto& f = e.fault;
    if (tells_a_state(f)) return fmt::format("{}{}/{}", states_of(f), f.port, e.job);
    const auto ruling = ruling_of(f);
    return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}.{}/{}/{}/{}", static_cast<int>(f.kind), f.code,
                       f.bdf, f.device, f.port, f.recovery.value_or(~0u), f.caused_by.value_or(~0u),
                       f.follow_up, static_cast<int>(f.severity), static_cast<int>(precedence_of(f)),
                       static_cast<int>(ruling.action), static_cast<int>(ruling.look),
                       f.gpu_instance.value_or(~0u), f.link.value_or(-1), e.job);
}

}  // namespace

void event_queue::put(event e) {
    if (queue_.size() < capacity_) {
        queue_.push_back(std::move(e));
        return;
    }
    // Full: the one of the lowest precedence goes, the newest of equals; what is on its way stays.
    ++dropped_;
    auto least = queue_.end();
    for (auto it = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(handed_out_, queue_.size()));
         it != queue_.end(); ++it)
        if (least == queue_.end() || precedence_of(it->fault) <= precedence_of(least->fault)) least = it;
    if (least == queue_.end() || precedence_of(least->fault) >= precedence_of(e.fault)) return;
    queue_.erase(least);
    queue_.push_back(std::move(e));
}

// In the order in which they were: what is told last of a device is what it is.
void event_queue::tell_states(const std::string& of) {
    std::vector<event> held;
    for (auto it = bursts_.lower_bound(of); it != bursts_.end() && it->first.starts_with(of); ++it) {
        auto& b = it->second;
        if (b.held == 0) continue;
        b.last.repeats = std::exchange(b.held, 0) - 1;
        held.push_back(std::move(b.last));
    }
    std::ranges::stable_sort(held, {}, &event::line_ms);
    for (auto& e : held) put(std::move(e));
}

bool event_queue::push(event e) {
    if (bursts_.size() >= max_bursts) flush_repeats(INT64_MAX);
    auto& b = bursts_[sameness(e)];
    if (e.line_ms - b.since_ms > burst_ms || b.passed == 0) {
        e.repeats += std::exchange(b.held, 0);
        b.since_ms = e.line_ms;
        b.passed = 1;
        if (tells_a_state(e.fault)) tell_states(states_of(e.fault));
        put(std::move(e));
        return true;
    }
    if (b.passed < burst_size) {
        ++b.passed;
        if (tells_a_state(e.fault)) tell_states(states_of(e.fault));
        put(std::move(e));
        return true;
    }
    ++b.held;
    b.last = std::move(e);
    return false;
}

void event_queue::flush_repeats(std::int64_t now_ms) {
    for (auto it = bursts_.begin(); it != bursts_.end();) {
        auto& b = it->second;
        if (now_ms - b.since_ms <= burst_ms) {
            ++it;
            continue;
        }
        if (b.held > 0 && tells_a_state(b.last.fault)) tell_states(states_of(b.last.fault));
        if (b.held > 0) {
            b.last.repeats = b.held - 1;
            put(std::move(b.last));
        }
        it = bursts_.erase(it);
    }
}

std::vector<event> event_queue::front(std::size_t most) const {
    handed_out_ = std::min(most, queue_.size());
    return {queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(handed_out_)};
}

void event_queue::confirm(std::size_t count) {
    queue_.erase(queue_.begin(),
                 queue_.begin() + static_cast<std::ptrdiff_t>(std::min(count, queue_.size())));
    handed_out_ = 0;
}

}  // namespace banyan::fault
