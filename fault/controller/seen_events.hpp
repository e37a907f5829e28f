// SPDX-License-Identifier: BSD-3-Clause
//
// Which events came already in this life of the controller: those that are not kept yet, so many of a node,
// and the last that are. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "fault/event.hpp"

namespace banyan::fault {

class seen_events {
  public:
    enum class sight : std::uint8_t {
        fresh,    ///< for the first time: it waits to be kept from now on
        waiting,  ///< it came before, and is not kept yet
        kept,
        refused,  ///< too many of its node wait
    };
    static constexpr std::size_t max_kept = 16'384, max_waiting = 128;  // a node's

    explicit seen_events(std::int64_t since_ms) : since_ms_(since_ms) {}

    sight look(const event& e);
    bool waits(const std::string& key) const;
    bool is_kept(const std::string& key) const;
    void keep(const std::string& node, const std::string& key, std::int64_t now_ms);
    /// It was not taken: the next time is the first.
    void forget(const event& e);
    /// Had it come before, in this life or an earlier one, its key would be here.
    bool covers(const event& e, std::int64_t now_ms) const;

  private:
    void wait_less(const std::string& node);

    std::int64_t since_ms_;                       // by our clock; of all that came later the keys are here
    std::unordered_map<std::string, bool> keys_;  // whether it is kept
    std::deque<std::pair<std::string, std::int64_t>> kept_;
    std::unordered_map<std::string, std::size_t> waiting_;  // of each node
};

}  // namespace banyan::fault
