// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/admission.hpp"

#include <algorithm>

namespace banyan::peer {
namespace {

namespace ip = boost::asio::ip;

std::string network_of(const ip::address& a) {
    if (a.is_v4()) return a.to_string();
    const auto v6 = a.to_v6();
    if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6).to_string();
    auto bytes = v6.to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), 0);
    return ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

bool admission::place::prove() {
    if (proven_) return true;
    if (owner_->proven_ >= owner_->limits_.proven) return false;
    owner_->forget(at_);
    ++owner_->proven_;
    proven_ = true;
    return true;
}

void admission::place::leave() {
    if (proven_)
        --owner_->proven_;
    else
        owner_->forget(at_);
}

void admission::forget(std::list<entry>::iterator at) {
    const auto count = per_network_.find(at->network);
    if (--count->second == 0) per_network_.erase(count);
    waiting_.erase(at);
}

// Closing ends the connection's coroutine, which then leaves its place; until then it waits behind the
// others.
void admission::make_room(const std::string& network) {
    const auto full_network = per_network_.find(network);
    const bool network_full =
        full_network != per_network_.end() && full_network->second >= limits_.waiting_per_address;
    if (!network_full && waiting_.size() < limits_.waiting) return;
    const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& e) {
        return e.close && (!network_full || e.network == network);
    });
    if (oldest == waiting_.end()) return;
    const auto close = std::exchange(oldest->close, nullptr);
    close();
}

std::unique_ptr<admission::place> admission::enter(const ip::tcp::endpoint& from,
                                                   std::function<void()> close) {
    if (limits_.reserved_port_only && from.port() >= first_unreserved_port) return nullptr;
    const auto network = network_of(from.address());
    make_room(network);
    // Those that were told to close still hold memory for a moment: twice the limit is the end.
    const auto count = per_network_.find(network);
    if (waiting_.size() >= 2 * limits_.waiting ||
        (count != per_network_.end() && count->second >= 2 * limits_.waiting_per_address))
        return nullptr;
    ++per_network_[network];
    waiting_.push_back({network, std::move(close)});
    return std::make_unique<place>(shared_from_this(), std::prev(waiting_.end()));
}

}  // namespace banyan::peer
