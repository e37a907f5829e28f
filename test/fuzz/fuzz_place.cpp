// SPDX-License-Identifier: BSD-3-Clause
//
// Any request on a small fabric: place, arrange and swap give distinct hosts out of those that are free, or
// an error.
#include <algorithm>
#include <set>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/reader.hpp>

#include "test/fuzz/fuzz_input.hpp"
#include "topo/generate/generate.hpp"

using namespace banyan::topo;
using banyan::fuzz::must;

namespace {

fabric make_fabric() {
    generate::options o;
    o.hosts = 48;
    o.group_size = 6;
    o.rails = 2;
    o.levels = 3;
    o.spine_group_size = 2;
    const auto made = generate::generate(o);
    must(made.has_value());
    const auto dump = read_ibnetdiscover(made->text);
    must(dump.has_value());
    return build_fabric(*dump);
}

// Every slot and spare on a host of its own, out of `from`.
void check(const placement& p, const request& r, const std::vector<std::uint32_t>& from, std::size_t spares) {
    must(p.nodes.size() == r.nodes && p.spares.size() == spares && p.buddies.size() == r.nodes);
    std::set<std::uint32_t> used;
    for (const auto& list : {p.nodes, p.spares})
        for (const auto host : list)
            must(std::binary_search(from.begin(), from.end(), host) && used.insert(host).second);
    for (std::size_t slot = 0; slot < p.buddies.size(); ++slot)
        must(p.buddies[slot] < r.nodes && (r.nodes == 1 || p.buddies[slot] != slot));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fabric f = make_fabric();
    const auto hosts = static_cast<std::uint32_t>(f.hosts.size());
    banyan::fuzz::input in(data, size);
    const auto total = in.up_to(64), per_node = in.up_to(16), spares = in.up_to(8);
    const auto busy = in.number<std::uint64_t>();
    std::optional<model_size> model;
    if (in.byte() % 2 != 0) model = model_size{in.up_to(16384), in.up_to(128), in.up_to(65536), in.up_to(64)};
    const bool all = in.byte() % 4 == 0;
    const auto dims = parse_shape(in.text());
    if (!dims) return 0;
    auto r = make_request(*dims, total, per_node, spares);
    if (!r) return 0;
    must(std::uint64_t{r->nodes} * r->ranks_per_node == dims->ranks());
    r->model = model;
    std::vector<std::uint32_t> free, prefer;
    for (std::uint32_t h = 0; h < hosts; ++h)
        if (all || (busy >> (h % 64) & 1) == 0) free.push_back(h);
    for (const auto h : free)
        if (in.byte() % 2 != 0) prefer.push_back(h);
    const auto slots = ranks_of_slots(*r);
    must(slots.size() == r->nodes && units_of_slots(*r).size() == r->nodes);
    const auto p = place(f, free, *r, prefer);
    if (!p) return 0;
    check(*p, *r, free, r->spares);
    (void)spread_of(f, *r, *p);
    if (const auto again = arrange(f, p->nodes, *r)) check(*again, *r, free, 0);
    const std::vector<std::uint32_t> lost{p->nodes[in.byte() % p->nodes.size()]};
    (void)swap(f, *p, lost, p->spares);
    return 0;
}
