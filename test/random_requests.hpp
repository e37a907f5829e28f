// SPDX-License-Identifier: BSD-3-Clause
//
// Requests of a user who wants slurmctld to think for long: any shape in any order, any numbers that it
// takes, on fabrics of many kinds with what is free in pieces. Shared by the
// tests, which count the work, and by scripts/bench placement, which measures the time.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>

namespace banyan::topo::test {

struct named_fabric {
    std::string name;
    fabric model;
};

/// One fabric of each kind with about `hosts` hosts: two and three tiers, small and large leaf groups, with
/// defects; and such as should not be: leaf groups that only lines join, one group for all, hosts in none,
/// all hosts in one failure domain.
std::vector<named_fabric> fabrics_of_all_kinds(std::uint32_t hosts);

struct random_request {
    request asked;
    std::vector<std::uint32_t> free, prefer;
    std::vector<float> risk;

    candidates from() const { return {free, prefer, risk}; }
    std::string text() const;
};

/// The same seed asks the same.
class random_requests {
  public:
    random_requests(const fabric& f, std::uint32_t seed) : f_(f), random_(seed) {}
    random_request next();

  private:
    std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
    bool one_in(std::uint32_t n) { return below(n) == 0; }
    std::vector<std::uint32_t> some_free();
    std::uint32_t some_nodes(std::uint32_t most);
    shape some_shape(std::uint32_t ranks);

    const fabric& f_;
    std::mt19937 random_;
};

}  // namespace banyan::topo::test
