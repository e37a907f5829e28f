// SPDX-License-Identifier: BSD-3-Clause
#include "topo/generate/plant.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace banyan::topo::generate {
namespace {

constexpr std::array<std::string_view, defect_kinds> names{
    "missing-leaf", "asymmetric-spine", "missing-uplink", "swapped-cables", "foreign-leaf",
    "missing-rail", "duplicate-name",   "no-record",      "duplicate-guid", "one-way-link",
    "narrow-link",  "slow-link",        "factory-name"};
constexpr std::array<std::string_view, 3> names_of_losses{"missing-switch", "missing-plane", "no-lid"};

void state_levels(const blueprint& b, truth& facts) {
    std::vector<bool> used(b.nodes.size());
    for (const auto& c : b.cables)
        if (!is_switch(b.nodes[c.a].what) && !c.gone && !b.nodes[c.a].gone) used[c.b] = true;
    for (std::uint32_t i = 0; i < b.nodes.size(); ++i) {
        const auto& n = b.nodes[i];
        if (!is_switch(n.what) || n.gone) continue;
        const bool leaf = n.what == role::leaf || n.what == role::storage_leaf;
        const std::uint8_t level = leaf ? 0 : n.what == role::spine ? 1 : 2;
        facts.switches.push_back({n.id, level, leaf && !used[i]});
    }
}

/// What is left of the blueprint, as somebody would find it who looks at every cable.
void state_facts(const blueprint& b, truth& facts) {
    for (std::uint32_t g = 0; g < b.n.groups; ++g) {
        true_group group;
        for (std::uint32_t r = 0; r < b.o.rails; ++r) {
            group.leaves.emplace_back();
            for (std::uint32_t p = 0; p < b.o.planes; ++p)
                if (const auto& leaf = b.nodes[b.leaf(g, r, p)]; !leaf.gone)
                    group.leaves.back().push_back(leaf.name);
        }
        facts.groups.push_back(std::move(group));
    }
    facts.hosts = b.hosts;
    std::unordered_map<std::string_view, std::uint32_t> host_of_name;
    for (std::uint32_t h = 0; h < b.hosts.size(); ++h) host_of_name.emplace(b.hosts[h].name, h);
    std::vector<std::int32_t> surplus(b.hosts.size());  // HCAs of its name: its own less others'
    for (std::uint32_t h = 0; h < b.hosts.size(); ++h)
        for (std::uint32_t r = 0; r < b.o.rails; ++r) {
            const auto i = b.hca(h, r);
            const auto& hca = b.nodes[i];
            if (hca.gone) continue;
            const auto& leaf = b.nodes[b.cables[b.hca_cable(i)].b];
            facts.hcas.push_back({hca.id, hca.name, h, leaf.group, leaf.rail});
            if (b.o.odd.names.format != naming{}.format) {  // goes with no defect of names
                ++surplus[h];
                continue;
            }
            const auto told = host_of_name.find(std::string_view(hca.name).substr(0, hca.name.find(' ')));
            if (told != host_of_name.end()) surplus[told->second] += told->second == h ? 1 : -1;
        }
    for (std::uint32_t h = 0; h < b.hosts.size(); ++h) facts.hosts[h].named = surplus[h] > 0;
    state_levels(b, facts);
    for (const auto& n : b.nodes)
        if (n.what == role::service && !n.gone)
            facts.others.push_back({n.id, n.name, n.serving, !n.doubtful});
    facts.tree = !b.o.odd.ring;
}

}  // namespace

std::string hex(guid id) { return fmt::format("0x{:016x}", id); }

std::string end_text(const blueprint& b, std::uint32_t node, std::uint16_t port) {
    return fmt::format("{} port {}", b.nodes[node].name, port);
}

std::string_view name_of(defect_kind kind) {
    const auto at = static_cast<std::size_t>(kind);
    return at < names.size() ? names[at] : names_of_losses[at - names.size()];
}

result<defect_rates> parse_rates(std::string_view text, const defect_rates& others) {
    auto out = others;
    BANYAN_TRY(const auto pairs, parse_key_values(text));
    for (const auto& [name, value] : pairs) {
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) {
            const auto close = nearest(name, {names.begin(), names.end()});
            return fail(errc::invalid_input, fmt::format("--defects: no defect is called \"{}\"", name),
                        close.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                      : "did you mean " + close + "?");
        }
        double rate = 0;
        const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), rate);
        if (bad != std::errc{} || end != value.data() + value.size() || !(rate >= 0 && rate <= 0.5))
            return fail(errc::invalid_input,
                        fmt::format("--defects: {}={} is no rate, expected 0 to 0.5", name, value));
        out[static_cast<std::size_t>(at - names.begin())] = rate;
    }
    return out;
}

std::string why_impossible(const options& o, defect_kind kind) {
    const auto groups = (o.hosts + o.group_size - 1) / o.group_size;
    const auto size = std::min(o.hosts, o.group_size);
    switch (kind) {
        case defect_kind::missing_leaf:
            if (o.rails < 3) return "a group needs three leaves to be the same group without one";
            return groups < 2 ? "there is one leaf group, and nothing to compare it with" : "";
        case defect_kind::foreign_leaf:
            if (groups < 2) return "there is one leaf group";
            [[fallthrough]];
        case defect_kind::swapped_cables:
            if (o.rails < 3) return "only hosts of three HCAs or more show where one of them should be";
            return size < 4 ? "only groups of four hosts or more show what is usual" : "";
        case defect_kind::missing_rail:
            if (o.rails < 2) return "a host without its only HCA is not on the fabric";
            return size < 4 ? "only groups of four hosts or more show what is usual" : "";
        case defect_kind::duplicate_name:
            return size < 4 ? "only groups of four hosts or more show what is usual" : "";
        case defect_kind::narrow_link:
            return o.rate.starts_with("1x") ? "links of one lane have nothing to lose" : "";
        case defect_kind::slow_link:
            return o.rate.ends_with("SDR") ? "no speed is below SDR" : "";
        default:
            return "";
    }
}

void plant_defects(blueprint& b, dice& random, truth& facts) {
    planter p(b, random, facts);
    plant_in_switches(p);
    plant_in_hosts(p);
    plant_in_links(p);
    plant_in_names(p);
    plant_losses(p);
    state_facts(b, facts);
}

result<generated> generate(const options& o) {
    BANYAN_TRY(const auto n, sizes_of(o));
    for (std::size_t k = 0; k < defect_kinds; ++k)
        if (const auto why = why_impossible(o, static_cast<defect_kind>(k)); o.rates[k] > 0 && !why.empty())
            return fail(errc::invalid_input, fmt::format("this fabric cannot have {}: {}", names[k], why));
    dice random(o.seed);
    auto b = blueprint_of(o, n, random);
    generated out;
    plant_defects(b, random, out.facts);
    finish(b);
    assign_lids(b);
    out.text = print(b, random);
    return out;
}

}  // namespace banyan::topo::generate
