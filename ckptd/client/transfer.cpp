// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/transfer.hpp"

#include <algorithm>
#include <utility>

namespace banyan::ckpt::device {
namespace {

// As cuda.h has them. A stream of the other kind would wait for the default stream, and hold it up.
constexpr unsigned non_blocking = 1, without_time = 2;

}  // namespace

transfer::lane& transfer::lane_of(const driver& by, context of, const void* gpu) {
    const auto known = std::ranges::find(lanes_, of, &lane::of);
    if (known != lanes_.end()) return *known;
    auto& l = lanes_.emplace_back(of);
    l.memory = gpu;
    if (by.make_stream(&l.stream, non_blocking) != success) l.stream = nullptr;
    return l;
}

transfer::transfer(const void* gpu, void* stream) {
    const auto by = cuda();
    if (!gpu || !by.usable) return;
    const in_context_of here(by, gpu);
    auto& l = lane_of(by, here.which(), gpu);
    if (!l.stream || by.make_event(&l.after, without_time) != success) return;
    if (by.record(l.after, stream) == success) return;
    by.end_event(std::exchange(l.after, nullptr));
}

transfer::transfer(transfer&& other) noexcept
    : lanes_(std::exchange(other.lanes_, {})), bytes_(other.bytes_) {}

transfer::~transfer() {
    if (lanes_.empty()) return;
    const auto by = cuda();
    for (const auto& l : lanes_) {
        const in_context_of here(by, l.memory);
        if (l.after) by.end_event(l.after);
        if (l.stream) by.end_stream(l.stream);
    }
}

result<void> transfer::order(const driver& by, lane& l) {
    if (std::exchange(l.ordered, true)) return {};
    if (l.after) return checked(by.let_wait(l.stream, l.after, 0), "from", 0);
    return checked(by.synchronize(), "from", 0);
}

result<void> transfer::copy(void* host, const void* gpu, std::size_t bytes) {
    const auto by = cuda();
    const in_context_of here(by, gpu);
    auto& l = lane_of(by, here.which(), gpu);
    BANYAN_CHECK(order(by, l));
    bytes_ += bytes;
    return checked(l.stream ? by.to_host_on(host, address_of(gpu), bytes, l.stream)
                            : by.to_host(host, address_of(gpu), bytes),
                   "from", bytes);
}

result<void> transfer::finish() {
    const auto by = cuda();
    result<void> out;
    for (const auto& l : lanes_) {
        if (!l.stream) continue;
        const in_context_of here(by, l.memory);
        if (auto done = checked(by.wait_for_stream(l.stream), "from", bytes_); !done) out = done;
    }
    return out;
}

}  // namespace banyan::ckpt::device
