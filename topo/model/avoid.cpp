// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/capacity.hpp>
#include <banyan/topo/switch_names.hpp>
#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

constexpr std::string_view avoid_head = "banyan-avoid 1 ";
constexpr std::size_t longest_why = 64;

std::unexpected<error> damaged_list(std::string_view how) {
    return fail(errc::invalid_input, fmt::format("the list of links to avoid is damaged: {}", how),
                "the fault controller writes it again at its start");
}

template <class Number>
bool read_whole(std::string_view text, int base, Number& into) {
    const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), into, base);
    return why == std::errc() && end == text.data() + text.size();
}

guid guid_of(const fabric& f, const port_ref& p) {
    return p.kind == node_kind::hca ? f.hcas[p.index].id : f.switches[p.index].id;
}

link_port link_port_of(const fabric& f, const port_ref& p) { return {guid_of(f, p), p.port}; }

/// Where a link of a switch leads: 0 to a host, 1 down, 2 up, 3 to one of its own level.
int way_of(const fabric& f, const port_ref& from, const port_ref& to) {
    if (to.kind != node_kind::switch_node) return 0;
    const auto own = f.switches[from.index].level, other = f.switches[to.index].level;
    return own == other ? 3 : own < other ? 2 : 1;
}

constexpr const char* way_words[] = {"to hosts", "down", "up", "to its own level"};

std::set<link_port> avoided_ports(std::span<const avoided_link> all) {
    std::set<link_port> out;
    for (const auto& one : all)
        for (const auto& p : {one.a, one.b})
            if (p.id != 0) out.insert(p);
    return out;
}

bool is_avoided(const std::set<link_port>& ports, const fabric& f, const link& l) {
    return ports.contains(link_port_of(f, l.a)) || ports.contains(link_port_of(f, l.b));
}

}  // namespace

std::string avoid_text(std::span<const avoided_link> all) {
    auto out = fmt::format("{}{}\n", avoid_head, all.size());
    for (const auto& l : all)
        out += fmt::format("{:016x} {} {:016x} {} {}\n", l.a.id, l.a.port, l.b.id, l.b.port, l.why);
    return out;
}

result<std::vector<avoided_link>> read_avoid(std::string_view text) {
    if (!text.starts_with(avoid_head)) return damaged_list("it does not begin as one");
    if (!text.ends_with('\n')) return damaged_list("it is cut");
    text.remove_suffix(1);
    auto lines = split(text, '\n');
    std::size_t told = 0;
    if (!read_whole(lines.front().substr(avoid_head.size()), 10, told) || told > max_avoided_links ||
        told != lines.size() - 1)
        return damaged_list("its head and its lines differ");
    std::vector<avoided_link> out;
    for (const auto line : std::span(lines).subspan(1)) {
        const auto words = split(line, ' ');
        avoided_link l;
        if (words.size() != 5 || !read_whole(words[0], 16, l.a.id) || !read_whole(words[1], 10, l.a.port) ||
            !read_whole(words[2], 16, l.b.id) || !read_whole(words[3], 10, l.b.port) || words[4].empty() ||
            words[4].size() > longest_why || (l.a.id == 0 && l.b.id == 0))
            return damaged_list(fmt::format("line {}", out.size() + 2));
        l.why = printable(words[4]);
        out.push_back(std::move(l));
    }
    return out;
}

std::size_t mark_avoided(fabric& f, std::span<const avoided_link> all) {
    const auto ports = avoided_ports(all);
    std::size_t found = 0;
    bool changed = false;
    for (auto& l : f.links) {
        const bool now = !ports.empty() && is_avoided(ports, f, l);
        found += now;
        changed = changed || now != l.avoid;
        l.avoid = now;
    }
    if (!changed) return found;
    f.tier_cost = tier_costs(f);
    mark_slow_hosts(f);
    return found;
}

std::uint32_t find_link(const fabric& f, const avoided_link& one) {
    const auto ports = avoided_ports({&one, 1});
    for (std::uint32_t i = 0; i < f.links.size(); ++i)
        if (is_avoided(ports, f, f.links[i])) return i;
    return none;
}

result<void> room_to_avoid(const fabric& f, std::span<const avoided_link> all, const avoided_link& one,
                           std::uint32_t percent) {
    const auto at = find_link(f, one);
    if (at == none)
        return fail(errc::not_found, "the fabric snapshot has no such link",
                    "is the snapshot an old one? banyan-topo snapshot");
    const auto ports = avoided_ports(all);
    const auto& wanted = f.links[at];
    for (const auto& [end, other] : {std::pair(wanted.a, wanted.b), std::pair(wanted.b, wanted.a)}) {
        if (end.kind != node_kind::switch_node) continue;
        const auto way = way_of(f, end, other);
        std::size_t alike = 0, taken = 0;
        for (std::uint32_t i = 0; i < f.links.size(); ++i) {
            const auto& l = f.links[i];
            for (const auto& [e, o] : {std::pair(l.a, l.b), std::pair(l.b, l.a)}) {
                if (e.kind != node_kind::switch_node || e.index != end.index || way_of(f, e, o) != way)
                    continue;
                ++alike;
                taken += i != at && (l.bad || is_avoided(ports, f, l));
            }
        }
        const auto most = std::max<std::size_t>(1, alike * percent / 100);
        if (taken + 1 > most)
            return fail(
                errc::exhausted,
                fmt::format("{} of the {} links of {} {} are kept off already, which is the limit ({} %)",
                            taken, alike, switch_names(f).of(f, end.index), way_words[way], percent));
    }
    return {};
}

}  // namespace banyan::topo
