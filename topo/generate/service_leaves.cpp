// SPDX-License-Identifier: BSD-3-Clause
//
// Leaves beside those of the groups: with few uplinks, under spines of their own, or with nobody on them.
#include <fmt/format.h>

#include "topo/generate/additions.hpp"

namespace banyan::topo::generate {
namespace {

/// Its spine is the first that has a number of its own.
void join_under_own_spine(additions& to, std::uint32_t leaf, std::uint32_t at) {
    const auto& b = to.b;
    const auto spine = to.add_switch(role::spine, fmt::format("{}-spine-{}", b.o.odd.services.name, at + 1));
    const auto cores = b.n.core_fan * b.n.spines;
    for (std::uint32_t i = 0; i < cores; ++i) to.join(leaf, spine, b.n.rate);
    for (auto core = at % 2; core < cores; core += 2)
        for (std::uint32_t i = 0; i < 2; ++i) to.join(spine, b.first_core + core, b.n.rate);
}

void join_service_leaf(additions& to, std::uint32_t leaf, std::uint32_t at) {
    const auto& b = to.b;
    const auto& s = b.o.odd.services;
    switch (s.up) {
        case service_leaves::way::one_spine:
            for (std::uint32_t i = 0; i < 2; ++i) to.join(leaf, b.spine(0, at % b.n.spines, 0), b.n.rate);
            return;
        case service_leaves::way::second_cores:
            join_under_own_spine(to, leaf, at);
            return;
        case service_leaves::way::some_spines: {
            const auto spines = std::min(s.spines, b.n.spines);
            const auto first = std::min(at * spines / 2, b.n.spines - spines);
            for (std::uint32_t i = 0; i < spines; ++i) to.join(leaf, b.spine(0, first + i, 0), b.n.rate);
        }
    }
}

void add_hosts(additions& to, const std::vector<std::uint32_t>& leaves) {
    const auto& s = to.b.o.odd.services;
    const auto rate = rate_or(to.b, s.host_rate);
    const auto serving = s.storage ? duty::storage_server : duty::service;
    const auto hosts = s.hosts * leaves.size() / s.hcas;
    for (std::uint32_t h = 0; h < hosts; ++h)
        for (std::uint32_t k = 0; k < s.hcas; ++k) {
            const auto hca =
                to.add_hca(fmt::format("{}{:02} {}", s.name, h + 1, device_word(to.b, none, k)), serving);
            to.b.nodes[hca].doubtful = s.storage;
            to.join(hca, leaves[(h * s.hcas + k) % leaves.size()], rate);
        }
}

/// One cable to each of the first spines that it is joined to, as many in parallel as other leaves have.
void add_hostless(additions& to) {
    const auto& b = to.b;
    const auto& s = b.o.odd.services;
    const auto spines =
        std::max(1u, static_cast<std::uint32_t>(s.hostless_uplinks * static_cast<double>(b.n.spines) + 0.5));
    const auto leaves = b.n.groups * b.o.rails;
    for (std::uint32_t i = 0; i < s.hostless; ++i) {
        const auto leaf = to.add_switch(
            role::storage_leaf, fmt::format("leaf-{:0{}}", leaves + i + 1, digits_of(leaves + s.hostless)));
        for (std::uint32_t k = 0; k < spines; ++k)
            for (std::uint32_t n = 0; n < b.n.links; ++n)
                to.join(leaf, b.spine(i % b.n.spine_groups, k, 0), b.n.rate);
    }
}

}  // namespace

void add_service_leaves(additions& to) {
    const auto& s = to.b.o.odd.services;
    std::vector<std::uint32_t> leaves;
    for (std::uint32_t i = 0; i < s.count; ++i)
        leaves.push_back(to.add_switch(role::storage_leaf, fmt::format("{}-leaf-{}", s.name, i + 1)));
    if (!leaves.empty() && s.hosts > 0) add_hosts(to, leaves);
    for (std::uint32_t i = 0; i < leaves.size(); ++i) join_service_leaf(to, leaves[i], i);
    add_hostless(to);
    if (!s.unmanaged) return;
    for (auto& n : to.b.nodes)
        if (n.what == role::leaf || n.what == role::storage_leaf) forget_switch_name(n);
}

}  // namespace banyan::topo::generate
