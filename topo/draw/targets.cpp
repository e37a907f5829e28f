// SPDX-License-Identifier: BSD-3-Clause
//
// From the objects of a defect, which are texts, to the things in the picture. The texts come from the wire:
// several things may share one, or nothing may have it.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include <banyan/topo/switch_names.hpp>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {
namespace {

constexpr std::size_t most_of_one_name = 64;

enum class thing { switch_node, hca, host };

health severity_of(std::string_view kind) {
    for (const auto* broken : {"missing-leaf", "missing-switch", "missing-uplink", "missing-rail",
                               "one-way-link", "no-record", "duplicate-guid"})
        if (kind == broken) return health::broken;
    return health::degraded;
}

bool is_of_names(std::string_view kind) {
    for (const auto* name : {"factory-name", "duplicate-name", "unknown-host", "unreadable"})
        if (kind == name) return true;
    return false;
}

class finder {
  public:
    explicit finder(const fabric& f) : f_(f) {
        const switch_names names(f);
        for (std::uint32_t i = 0; i < f.switches.size(); ++i) {
            add(f.switches[i].name, f.switches[i].id, thing::switch_node, i);
            if (names.nameless(i)) add(names.label(f, i), f.switches[i].id, thing::switch_node, i);
        }
        for (std::uint32_t i = 0; i < f.hcas.size(); ++i) add(f.hcas[i].name, f.hcas[i].id, thing::hca, i);
        for (std::uint32_t i = 0; i < f.hosts.size(); ++i)
            by_name_[f.hosts[i].name].push_back({thing::host, i});
        for (std::uint32_t i = 0; i < f.links.size(); ++i) {
            link_at_.emplace(key(f.links[i].a), i);
            link_at_.emplace(key(f.links[i].b), i);
        }
    }

    void find(std::string_view object, targets& out) const {
        if (take(object, out)) return;
        // The end of a link: "<description> port N".
        const auto at = object.rfind(" port ");
        if (at == std::string_view::npos) return;
        const auto digits = object.substr(at + 6);
        std::uint16_t port = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), port).ec != std::errc{}) return;
        take_port(object.substr(0, at), port, out);
    }

  private:
    struct entry {
        thing what;
        std::uint32_t index;
    };

    static std::uint64_t key(const port_ref& p) {
        return (p.kind == node_kind::switch_node ? 1ull << 63 : 0) | std::uint64_t{p.index} << 16 | p.port;
    }

    void add(const std::string& name, guid id, thing what, std::uint32_t index) {
        auto& same = by_name_[name];
        if (same.size() < most_of_one_name) same.push_back({what, index});
        by_guid_[id] = {what, index};
    }

    static void keep(const entry& e, targets& out) {
        (e.what == thing::hca    ? out.hcas
         : e.what == thing::host ? out.hosts
                                 : out.switches)
            .push_back(e.index);
    }

    bool take(std::string_view object, targets& out) const {
        if (const auto at = by_name_.find(std::string(object)); at != by_name_.end()) {
            for (const auto& e : at->second) keep(e, out);
            return true;
        }
        guid id = 0;
        if (!object.starts_with("0x")) return false;
        const auto read = std::from_chars(object.data() + 2, object.data() + object.size(), id, 16);
        if (read.ec != std::errc{}) return false;
        const auto at = by_guid_.find(id);
        if (at != by_guid_.end()) keep(at->second, out);
        return at != by_guid_.end();
    }

    void take_port(std::string_view name, std::uint16_t port, targets& out) const {
        const auto at = by_name_.find(std::string(name));
        if (at == by_name_.end()) return;
        for (const auto& e : at->second) {
            if (e.what == thing::host) continue;
            const auto kind = e.what == thing::hca ? node_kind::hca : node_kind::switch_node;
            const auto found = link_at_.find(key({kind, e.index, port}));
            // Of switches with one name, the one with such a port is meant.
            if (found == link_at_.end() && at->second.size() > 1) continue;
            if (found != link_at_.end()) out.links.push_back(found->second);
            // A link between switches is its own mark; an HCA's link is drawn as the HCA.
            if (e.what == thing::hca) out.hcas.push_back(e.index);
        }
    }

    const fabric& f_;
    std::unordered_map<std::string, std::vector<entry>> by_name_;
    std::unordered_map<guid, entry> by_guid_;
    std::unordered_map<std::uint64_t, std::uint32_t> link_at_;
};

void sort_unique(std::vector<std::uint32_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}

}  // namespace

std::vector<targets> find_targets(const fabric& f) {
    std::vector<targets> out(f.defects.size());
    if (f.defects.empty()) return out;
    const finder names(f);
    for (std::size_t i = 0; i < f.defects.size(); ++i) {
        out[i].of_group = f.defects[i].kind == "missing-leaf";
        out[i].notice = is_notice(f.defects[i]);
        out[i].severity = out[i].notice ? health::good : severity_of(f.defects[i].kind);
        out[i].of_names = is_of_names(f.defects[i].kind);
        for (const auto& object : f.defects[i].objects) names.find(object, out[i]);
        for (auto* list : {&out[i].switches, &out[i].hcas, &out[i].hosts, &out[i].links}) sort_unique(*list);
    }
    return out;
}

std::vector<std::size_t> in_order(const scene& s) {
    std::vector<std::size_t> out(s.defects.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    const auto key = [&](std::size_t i) {
        const auto& d = s.defects[i];
        return std::tuple(d.notice, d.of_names, d.severity != health::broken);
    };
    std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return key(a) < key(b); });
    return out;
}

}  // namespace banyan::topo::draw
