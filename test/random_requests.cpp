// SPDX-License-Identifier: BSD-3-Clause
#include "test/random_requests.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "topo/generate/generate.hpp"

namespace banyan::topo::test {
namespace {

fabric generated(generate::options o) {
    const auto made = generate::generate(o);
    if (!made) throw std::runtime_error(made.error().text());
    return build_fabric(read_ibnetdiscover(made->text).value());
}

generate::options with_groups_of(std::uint32_t hosts, std::uint32_t size) {
    generate::options o;
    o.hosts = hosts;
    o.group_size = size;
    o.rails = 1;
    o.levels = 3;
    o.spine_group_size = 16;
    return o;
}

bool is_prime(std::uint32_t n) {
    for (std::uint32_t d = 2; d * d <= n; ++d)
        if (n % d == 0) return false;
    return n > 1;
}

/// Each leaf group is an island.
fabric with_lines_between_groups(fabric f) {
    for (std::uint32_t g = 0; g < f.leaf_groups.size(); ++g) {
        f.leaf_groups[g].spine_group = f.leaf_groups[g].island = g;
        f.wan.push_back({0, g, 800});
    }
    return f;
}

}  // namespace

std::vector<named_fabric> fabrics_of_all_kinds(std::uint32_t hosts) {
    std::vector<named_fabric> out;
    const auto usual = generated(with_groups_of(hosts, 32));
    auto two_tiers = with_groups_of(hosts, 32);
    two_tiers.levels = 2;
    out.push_back({"three tiers", usual});
    out.push_back({"two tiers", generated(two_tiers)});
    out.push_back({"groups of 4", generated(with_groups_of(hosts, 4))});
    auto spoilt = with_groups_of(hosts, 64);
    spoilt.rails = 2;
    spoilt.rates = generate::parse_rates("missing-rail=0.05,slow-link=0.05,no-record=0.02").value();
    out.push_back({"with defects", generated(spoilt)});
    out.push_back({"groups that lines join", with_lines_between_groups(usual)});
    out.push_back({"small groups that lines join", with_lines_between_groups(out[2].model)});
    auto one = usual;
    for (auto& h : one.hosts) h.leaf_group = 0;
    one.leaf_groups.resize(1);
    out.push_back({"one group", one});
    auto two = one;
    two.leaf_groups.push_back(two.leaf_groups[0]);
    for (std::size_t h = 0; h < two.hosts.size() / 2; ++h) two.hosts[h].leaf_group = 1;
    out.push_back({"two groups", two});
    auto no_groups = usual;
    for (auto& h : no_groups.hosts) h.leaf_group = none;
    out.push_back({"no groups", no_groups});
    auto one_room = usual;
    for (std::uint32_t h = 0; h < one_room.hosts.size(); ++h) {
        one_room.hosts[h].failure_domains = {fmt::format("rack={}", h / 16), "room=the only one"};
        one_room.hosts[h].nvlink_domain = fmt::format("nvl{}", h * 7 % 977);
    }
    out.push_back({"one room", one_room});
    return out;
}

std::string random_request::text() const {
    return fmt::format("{} -N {} with {} ranks each and {} spares{}, {} hosts free, {} preferred{}",
                       asked.dims.text(), asked.nodes + asked.spares, asked.ranks_per_node, asked.spares,
                       asked.model ? ", " + text_of(*asked.model) : "", free.size(), prefer.size(),
                       risk.empty() ? "" : ", some risky");
}

/// All, some at random, a few of each leaf group, or runs.
std::vector<std::uint32_t> random_requests::some_free() {
    std::vector<std::uint32_t> out;
    const auto hosts = static_cast<std::uint32_t>(f_.hosts.size());
    const auto kind = below(4), share = 1 + below(100), few = 1 + below(31), run = 1 + below(200);
    bool on = true;
    for (std::uint32_t h = 0; h < hosts; ++h) {
        if (kind == 3 && h % run == 0) on = below(100) < share;
        const bool free = kind == 0 ? true : kind == 1 ? below(100) < share : kind == 2 ? h % 32 < few : on;
        if (free) out.push_back(h);
    }
    return out;
}

std::uint32_t random_requests::some_nodes(std::uint32_t most) {
    auto n = 1 + below(most);
    switch (below(6)) {
        case 0:
            return most;
        case 1:
            return 1 + below(std::min(most, 64u));
        case 2:
            while (!is_prime(n) && n > 1) --n;
            return n;
        case 3:
            while ((n & (n - 1)) != 0) n &= n - 1;
            return n;
        case 4:
            return std::max(1u, n / 32 * 32);
        default:
            return n;
    }
}

/// The prime factors of `ranks` on the dimensions: on one, on two, or anyhow; in any order.
shape random_requests::some_shape(std::uint32_t ranks) {
    auto dims = all_dimensions;
    std::shuffle(dims.begin(), dims.end(), random_);
    const auto used = 1 + below(static_cast<std::uint32_t>(dims.size()));
    std::array<std::uint32_t, dimension_count> size{1, 1, 1, 1, 1};
    const bool to_the_first = one_in(3);
    for (std::uint32_t p = 2; ranks > 1; ++p) {
        if (p * p > ranks) p = ranks;
        for (; ranks % p == 0; ranks /= p) size[to_the_first && !one_in(8) ? 0 : below(used)] *= p;
    }
    shape out;
    for (std::uint32_t i = 0; i < used; ++i) out.order.push_back({dims[i], size[i]});
    std::shuffle(out.order.begin(), out.order.end(), random_);
    return out;
}

random_request random_requests::next() {
    random_request q;
    do q.free = some_free();
    while (q.free.empty());
    const auto free = static_cast<std::uint32_t>(q.free.size());
    auto spares = one_in(2) ? 0 : below(one_in(4) ? 1025 : 9);
    spares = std::min(spares, free - 1);
    const auto nodes = some_nodes(free - spares);
    constexpr std::array per_node{1u, 2u, 4u, 8u, 8u, 8u, 16u, 72u, 96u, 192u, 251u, 1024u};
    const auto most = std::min(max_ranks_per_node, max_ranks / nodes);
    auto each = one_in(4) ? 1 + below(most) : per_node[below(per_node.size())];
    each = std::min(each, most);
    q.asked = make_request(some_shape(nodes * each), nodes + spares, each, spares).value();
    if (one_in(2)) q.asked.model = model_size{};
    if (one_in(8)) q.asked.model = model_size{10'000'000, 1 + below(1000), 1 + below(100'000), 10'000'000};
    if (one_in(4))
        for (const auto h : q.free)
            if (one_in(5)) q.prefer.push_back(h);
    if (one_in(4)) {
        q.risk.resize(f_.hosts.size());
        for (auto& r : q.risk) r = one_in(6) ? 0.5f : 0;
    }
    return q;
}

}  // namespace banyan::topo::test
