// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/fabric_fault.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/diff.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

namespace banyan::fault {
namespace {

// What the accepted fabric knows about a GUID.
class directory {
  public:
    explicit directory(const topo::fabric& f) : fabric_(f) {
        for (std::size_t i = 0; i < f.hcas.size(); ++i) hcas_[f.hcas[i].id] = i;
    }
    const topo::hca* hca(topo::guid id) const {
        const auto it = hcas_.find(id);
        return it == hcas_.end() ? nullptr : &fabric_.hcas[it->second];
    }
    std::string host_of(const topo::link_end& end) const {
        const auto* h = hca(end.id);
        if (h && h->host < fabric_.hosts.size()) return fabric_.hosts[h->host].name;
        return end.node_name.substr(0, end.node_name.find(' '));
    }
    std::uint32_t host_index(topo::guid id) const {
        const auto* h = hca(id);
        return h ? h->host : topo::none;
    }

  private:
    const topo::fabric& fabric_;
    std::map<topo::guid, std::size_t> hcas_;
};

bool is_switch(const topo::link_end& e) { return e.kind == topo::node_kind::switch_node; }

end_point switch_end(const topo::link_end& e) { return {e.node_name, e.node_name, e.port, e.id}; }

fabric_fault lost_link(const topo::changed_link& l) {
    fabric_fault out;
    out.object.kind = object_kind::link;
    out.object.node = l.a.node_name;
    out.object.ends = {switch_end(l.a), switch_end(l.b)};
    out.reason = "fabric-link";
    out.cause =
        fmt::format("link down: {} port {} <-> {} port {}", l.a.node_name, l.a.port, l.b.node_name, l.b.port);
    return out;
}

fabric_fault lost_host_link(const topo::changed_link& l, const directory& names) {
    const auto& card = is_switch(l.a) ? l.b : l.a;
    const auto& other = is_switch(l.a) ? l.a : l.b;
    const auto blank = card.node_name.find(' ');
    fabric_fault out;
    out.object.kind = object_kind::hca;
    out.object.node = names.host_of(card);
    out.object.hca = blank == std::string::npos ? card.node_name : card.node_name.substr(blank + 1);
    out.object.ends = {{out.object.node, card.node_name, card.port, card.id}, switch_end(other)};
    out.reason = "host-link";
    out.cause = fmt::format("link of {} {} down: {} port {}", out.object.node, out.object.hca,
                            other.node_name, other.port);
    out.how_bad = severity::error;
    return out;
}

/// It is there, and carries less than it did.
std::optional<fabric_fault> slower_link(const topo::changed_link& l, const directory& names) {
    const auto carries = [](const topo::link_rate& r) { return topo::gbps(r); };
    // Of a rate that is not known nothing can be said.
    if (carries(l.after) <= 0 || carries(l.after) >= carries(l.before)) return {};
    const bool between = is_switch(l.a) && is_switch(l.b);
    auto out = between ? lost_link(l) : lost_host_link(l, names);
    out.reason = "link-slow";
    out.how_bad = severity::error;
    const auto text = [&](const topo::link_rate& r) {
        return fmt::format("{:g} Gbit/s ({} lanes)", carries(r), r.width);
    };
    out.cause = fmt::format("link is up at {}, was {}: {}", text(l.after), text(l.before), out.object.text());
    return out;
}

fabric_fault lost_switch(const topo::changed_node& n) {
    fabric_fault out;
    out.object.kind = object_kind::sw;
    out.object.node = n.name;
    out.object.ends = {{n.name, n.name, 0, n.id}};
    out.reason = "fabric-switch";
    out.cause = fmt::format("switch {} is gone", n.name);
    out.how_bad = severity::error;
    return out;
}

fabric_fault lost_host(const std::string& host, std::vector<end_point> ends) {
    fabric_fault out;
    out.object.kind = object_kind::node;
    out.object.node = host;
    out.object.ends = std::move(ends);
    out.reason = "host-lost";
    out.cause = fmt::format("all {} HCAs of {} are gone", out.object.ends.size(), host);
    out.how_bad = severity::error;
    return out;
}

using port_id = std::pair<topo::guid, std::uint16_t>;

port_id port_of(const topo::fabric& f, const topo::port_ref& p) {
    return {p.kind == topo::node_kind::hca ? f.hcas[p.index].id : f.switches[p.index].id, p.port};
}

// What is new is accepted, but not that a link got slower: that is told until it is as it was.
void keep_former_rates(topo::fabric& now, const std::vector<topo::changed_link>& changed) {
    std::map<port_id, topo::link_rate> former;
    for (const auto& l : changed)
        if (topo::gbps(l.after) < topo::gbps(l.before)) former[{l.a.id, l.a.port}] = l.before;
    if (former.empty()) return;
    for (auto& l : now.links)
        if (const auto at = former.find(port_of(now, l.a)); at != former.end()) l.rate = at->second;
}

// A dead switch or host stands for its links.
std::vector<fabric_fault> collapse(const topo::fabric& before, const topo::fabric_diff& d) {
    const directory names(before);
    std::map<topo::guid, fabric_fault> dead;
    for (const auto& n : d.lost_nodes)
        if (n.kind == topo::node_kind::switch_node) dead.emplace(n.id, lost_switch(n));
    std::vector<fabric_fault> out;
    std::map<std::uint32_t, std::vector<fabric_fault>> by_host;
    for (const auto& l : d.lost_links) {
        const bool between = is_switch(l.a) && is_switch(l.b);
        auto fault = between ? lost_link(l) : lost_host_link(l, names);
        if (auto it = dead.find(l.a.id); it != dead.end())
            it->second.covers.push_back(fault.key());
        else if (it = dead.find(l.b.id); it != dead.end())
            it->second.covers.push_back(fault.key());
        else if (between)
            out.push_back(std::move(fault));
        else
            by_host[names.host_index(is_switch(l.a) ? l.b.id : l.a.id)].push_back(std::move(fault));
    }
    for (const auto& l : d.changed_rates)
        if (auto slower = slower_link(l, names)) out.push_back(std::move(*slower));
    for (auto& [id, fault] : dead) out.push_back(std::move(fault));
    for (auto& [host, faults] : by_host) {
        const bool known = host < before.hosts.size();
        if (!known || faults.size() < 2 || faults.size() < before.hosts[host].hcas.size()) {
            out.insert(out.end(), faults.begin(), faults.end());
            continue;
        }
        std::vector<end_point> ends;
        std::vector<std::string> covers;
        for (const auto& f : faults) {
            ends.push_back(f.object.ends.front());
            covers.push_back(f.key());
        }
        out.push_back(lost_host(before.hosts[host].name, std::move(ends)));
        out.back().covers = std::move(covers);
    }
    return out;
}

}  // namespace

std::string key_of(const object& o) {
    std::vector<std::string> ends;
    for (const auto& e : o.ends) ends.push_back(fmt::format("{:x}:{}", e.guid, e.port));
    std::ranges::sort(ends);
    auto out = std::string(name_of(o.kind));
    for (const auto& e : ends) (out += '/') += e;
    return out;
}

std::string fabric_fault::key() const { return key_of(object); }

struct fabric_memory::impl {
    std::optional<topo::fabric> accepted;
};

fabric_memory::fabric_memory() : impl_(std::make_unique<impl>()) {}
fabric_memory::~fabric_memory() = default;

result<void> fabric_memory::load_snapshot(const std::string& path) {
    BANYAN_TRY(auto loaded, topo::load_snapshot(path));
    impl_->accepted = std::move(loaded);
    return {};
}

std::vector<fabric_fault> fabric_memory::links_at(const std::vector<named_port>& ports) const {
    if (!impl_->accepted || ports.empty()) return {};
    const std::set<named_port> named(ports.begin(), ports.end());
    const directory names(*impl_->accepted);
    std::vector<fabric_fault> out;
    for (const auto& l : topo::diff(*impl_->accepted, {}).lost_links)
        if (named.contains({l.a.id, l.a.port}) || named.contains({l.b.id, l.b.port}))
            out.push_back(is_switch(l.a) && is_switch(l.b) ? lost_link(l) : lost_host_link(l, names));
    return out;
}

result<std::vector<fabric_fault>> fabric_memory::compare(std::string_view text) {
    BANYAN_TRY(const auto dump, topo::read_dump(std::string(text)));
    topo::build_options options;
    options.created_unix_s = std::time(nullptr);
    auto now = topo::build_fabric(dump, options);
    if (!impl_->accepted) {
        impl_->accepted = std::move(now);
        return std::vector<fabric_fault>{};
    }
    const auto d = topo::diff(*impl_->accepted, now);
    const auto nodes = impl_->accepted->switches.size() + impl_->accepted->hcas.size();
    if (d.lost_nodes.size() * 2 > nodes)
        return fail(
            errc::unavailable,
            fmt::format(
                "{} of {} nodes of the fabric are not seen: this host's own link is more likely at fault",
                d.lost_nodes.size(), nodes),
            "check the HCA that [fault] discover uses");
    auto out = collapse(*impl_->accepted, d);
    if (d.lost_links.empty() && d.lost_nodes.empty()) {
        keep_former_rates(now, d.changed_rates);
        impl_->accepted = std::move(now);
    }
    return out;
}

}  // namespace banyan::fault
