// SPDX-License-Identifier: BSD-3-Clause
//
// The errors that ports count, joined with the links; which of those are bad.
#include "topo/model/health.hpp"

#include <algorithm>
#include <array>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/health.hpp>
#include <banyan/topo/switch_names.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo {
namespace {

using build::port_id;

/// Finds the link end that a tool means: by the GUID of node or port, by the LID, by the node's name.
class port_finder {
  public:
    explicit port_finder(const fabric& f) : f_(f) {
        for (std::uint32_t i = 0; i < f.links.size(); ++i)
            for (const auto side : {0u, 1u}) add(i, side);
    }

    /// Twice the index of the link, and one more for its end b; none where no link is meant, or several are.
    std::uint32_t find(const port_errors& p) const {
        for (const auto id : {p.id, p.port_id})
            if (const auto at = id == 0 ? by_guid_.end() : by_guid_.find({id, p.port}); at != by_guid_.end())
                return at->second;
        if (p.lid != 0)
            if (const auto at = by_lid_.find({p.lid, p.port}); at != by_lid_.end()) return at->second;
        if (!p.name.empty())
            if (const auto at = by_name_.find({p.name, p.port}); at != by_name_.end()) return at->second;
        return none;
    }

  private:
    template <class Key>
    using by_port = boost::unordered_flat_map<std::pair<Key, std::uint16_t>, std::uint32_t>;

    template <class Key>
    static void put(by_port<Key>& map, Key key, std::uint16_t port, std::uint32_t value) {
        // Where two have one key, it finds neither.
        const auto [at, fresh] = map.try_emplace({key, port}, value);
        if (!fresh) at->second = none;
    }

    void add(std::uint32_t link, std::uint32_t side) {
        const auto& e = side == 0 ? f_.links[link].a : f_.links[link].b;
        const auto value = 2 * link + side;
        const bool is_hca = e.kind == node_kind::hca;
        put(by_guid_, is_hca ? f_.hcas[e.index].id : f_.switches[e.index].id, e.port, value);
        const auto lid = is_hca ? f_.hcas[e.index].lid : f_.switches[e.index].lid;
        if (lid != 0) put(by_lid_, lid, e.port, value);
        put(by_name_, std::string_view(is_hca ? f_.hcas[e.index].name : f_.switches[e.index].name), e.port,
            value);
    }

    const fabric& f_;
    by_port<guid> by_guid_;
    by_port<std::uint32_t> by_lid_;
    by_port<std::string_view> by_name_;
};

/// What is over its limit at one end, or empty. LinkDownedCounter is told apart: a host that starts takes its
/// link down as well.
struct findings {
    std::string errors, downs;
};

findings judge(const port_errors& p, const std::string& end, const error_limits& limits) {
    findings out;
    for (std::size_t i = 0; i < link_counter_count; ++i) {
        const auto c = static_cast<link_counter>(i);
        if (p.count[c] <= limits.count[c]) continue;
        auto& text = c == link_counter::downed ? out.downs : out.errors;
        text += fmt::format("{}{} {} at {} (more than {}: {})", text.empty() ? "" : ", ", name_of(c),
                            p.count[c], end, limits.count[c], limits.count_source);
    }
    const auto rate = [&](const char* name, double ber) {
        if (ber > limits.ber)
            out.errors +=
                fmt::format("{}{} {:.3g} at {} (more than {:.3g}: {})", out.errors.empty() ? "" : ", ", name,
                            ber, end, limits.ber, limits.ber_source);
    };
    rate("effective BER", p.effective_ber);
    rate("symbol BER", p.symbol_ber);
    return out;
}

}  // namespace

namespace build {

health_taken mark_bad_links(fabric& f, const health& h, const error_limits& limits) {
    health_taken out;
    for (auto& l : f.links) l.bad = false;
    const port_finder finder(f);
    const switch_names names(f);
    const auto name = [&](const port_ref& e) {
        return fmt::format("{} port {}",
                           e.kind == node_kind::hca ? f.hcas[e.index].name : names.label(f, e.index), e.port);
    };
    boost::unordered_flat_map<std::uint32_t, std::array<findings, 2>> found;
    for (const auto& p : h.ports) {
        const auto at = finder.find(p);
        if (at == none) {
            // Ports that are down, and a switch's own, are on no link; they are strangers only if they
            // accuse.
            out.strangers += !judge(p, "", limits).errors.empty();
            continue;
        }
        ++out.ports;
        const auto& l = f.links[at / 2];
        auto of_end = judge(p, name(at % 2 == 0 ? l.a : l.b), limits);
        // A port that two tools tell of: the later one counts.
        if (!of_end.errors.empty() || !of_end.downs.empty() || found.contains(at / 2))
            found[at / 2][at % 2] = std::move(of_end);
    }
    std::vector<std::uint32_t> order;
    for (const auto& [link, ends] : found) order.push_back(link);
    std::sort(order.begin(), order.end());
    const auto both = [](const std::string& a, const std::string& b) {
        return a.empty() || b.empty() ? a + b : a + ", " + b;
    };
    for (const auto i : order) {
        auto& l = f.links[i];
        const auto& ends = found[i];
        const auto errors = both(ends[0].errors, ends[1].errors), downs = both(ends[0].downs, ends[1].downs);
        const auto report = [&](const char* kind, const std::string& what, double sure) {
            f.defects.push_back(
                {kind, {name(l.a), name(l.b)}, what, sure, {port_id(f, l.a), port_id(f, l.b)}});
        };
        if (!errors.empty()) {
            l.bad = true;
            report("bad-link", "it is up, but: " + both(errors, downs), 0.95);
        } else if (!downs.empty()) {
            report("flapping-link", downs, 0.6);
        }
    }
    return out;
}

}  // namespace build

health_taken apply_health(fabric& f, const health& h, const error_limits& limits) {
    const auto drop = [&](std::initializer_list<std::string_view> kinds) {
        std::erase_if(f.defects, [&](const defect& d) {
            return std::find(kinds.begin(), kinds.end(), d.kind) != kinds.end();
        });
    };
    health_taken out;
    if (h.counters_told) {
        drop({"bad-link", "flapping-link"});
        out = build::mark_bad_links(f, h, limits);
        f.tier_cost = tier_costs(f);
        mark_slow_hosts(f);
    }
    if (!h.firmware.empty()) {
        drop({"odd-firmware"});
        build::find_odd_firmware(f, h.firmware);
    }
    if (!h.managers.empty() || h.managers_listed) {
        drop({"no-master", "no-standby", "two-masters"});
        build::take_managers(f, h);
    }
    return out;
}

}  // namespace banyan::topo
