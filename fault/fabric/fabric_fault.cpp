// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/fabric_fault.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "common/clock.hpp"
#include "common/file.hpp"

namespace banyan::fault {
namespace {

std::string host_of(const known_fabric& names, const topo::link_end& card) {
    auto out = names.host_of(card.id);
    return out.empty() ? card.node_name.substr(0, card.node_name.find(' ')) : out;
}

std::uint64_t mbps_of(const topo::link_rate& r) {
    return static_cast<std::uint64_t>(std::llround(topo::gbps(r) * 1000));
}

bool is_switch(const topo::link_end& e) { return e.kind == topo::node_kind::switch_node; }

end_point switch_end(const topo::link_end& e) { return {e.node_name, e.node_name, e.port, e.id}; }

fabric_fault lost_link(const topo::changed_link& l) {
    fabric_fault out;
    out.object.kind = object_kind::link;
    out.object.node = l.a.node_name;
    out.object.ends = {switch_end(l.a), switch_end(l.b)};
    out.object.mbps = mbps_of(l.before);
    out.reason = "fabric-link";
    out.cause =
        fmt::format("link down: {} port {} <-> {} port {}", l.a.node_name, l.a.port, l.b.node_name, l.b.port);
    return out;
}

fabric_fault lost_host_link(const topo::changed_link& l, const known_fabric& names) {
    const auto& card = is_switch(l.a) ? l.b : l.a;
    const auto& other = is_switch(l.a) ? l.a : l.b;
    const auto blank = card.node_name.find(' ');
    fabric_fault out;
    out.object.kind = object_kind::hca;
    out.object.node = host_of(names, card);
    out.object.hca = blank == std::string::npos ? card.node_name : card.node_name.substr(blank + 1);
    out.object.ends = {{out.object.node, card.node_name, card.port, card.id}, switch_end(other)};
    out.object.mbps = mbps_of(l.before);
    out.reason = host_link_reason;
    out.cause = fmt::format("link of {} {} down: {} port {}", out.object.node, out.object.hca,
                            other.node_name, other.port);
    out.how_bad = severity::error;
    return out;
}

/// It is there, and carries less than it did.
fabric_fault slower_link(const topo::changed_link& l, const known_fabric& names) {
    const bool between = is_switch(l.a) && is_switch(l.b);
    auto out = between ? lost_link(l) : lost_host_link(l, names);
    out.reason = link_slow;
    out.how_bad = severity::error;
    const auto text = [](const topo::link_rate& r) {
        return fmt::format("{:g} Gbit/s ({} lanes)", topo::gbps(r), r.width);
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
    out.reason = host_lost_reason;
    out.cause = fmt::format("all {} HCAs of {} are gone", out.object.ends.size(), host);
    out.how_bad = severity::error;
    return out;
}

// A dead switch or host stands for its links.
std::vector<fabric_fault> collapse(const known_fabric& before, const known_fabric::difference& d) {
    std::map<topo::guid, fabric_fault> dead;
    for (const auto& n : d.gone)
        if (n.kind == topo::node_kind::switch_node) dead.emplace(n.id, lost_switch(n));
    std::vector<fabric_fault> out;
    std::map<std::string, std::vector<fabric_fault>> by_host;  // "": those of no host that is known
    for (const auto& l : d.lost) {
        const bool between = is_switch(l.a) && is_switch(l.b);
        auto fault = between ? lost_link(l) : lost_host_link(l, before);
        if (auto it = dead.find(l.a.id); it != dead.end())
            it->second.covers.push_back(fault.key());
        else if (it = dead.find(l.b.id); it != dead.end())
            it->second.covers.push_back(fault.key());
        else if (between)
            out.push_back(std::move(fault));
        else
            by_host[before.host_of(is_switch(l.a) ? l.b.id : l.a.id)].push_back(std::move(fault));
    }
    for (const auto& l : d.slower) out.push_back(slower_link(l, before));
    for (auto& [id, fault] : dead) out.push_back(std::move(fault));
    for (auto& [host, faults] : by_host) {
        if (host.empty() || faults.size() < 2 || faults.size() < before.hcas_of(host)) {
            out.insert(out.end(), faults.begin(), faults.end());
            continue;
        }
        std::vector<end_point> ends;
        std::vector<std::string> covers;
        for (const auto& f : faults) {
            ends.push_back(f.object.ends.front());
            covers.push_back(f.key());
        }
        out.push_back(lost_host(host, std::move(ends)));
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
    std::optional<known_fabric> accepted;
    std::shared_ptr<const known_fabric> seen = std::make_shared<const known_fabric>();
    std::string path;  // empty: it is not kept
    bool changed = false;
};

fabric_memory::fabric_memory() : impl_(std::make_unique<impl>()) {}
fabric_memory::~fabric_memory() = default;

result<void> fabric_memory::load(const std::string& accepted, const std::string& snapshot,
                                 std::string& warning) {
    impl_->path = accepted;
    const auto text = read_file(accepted, topo::max_snapshot_bytes);
    auto kept = text ? known_fabric::read(*text) : std::unexpected(text.error());
    if (kept) {
        impl_->accepted = std::move(*kept);
        return {};
    }
    if (text || kept.error().code != errc::not_found) {
        impl_->path.clear();
        warning = fmt::format(
            "the accepted fabric {} cannot be read, and is left as it is: {}; what was missing when the "
            "snapshot was made is not missed",
            accepted, kept.error().what);
    }
    BANYAN_TRY(const auto loaded, topo::load_snapshot(snapshot));
    impl_->accepted.emplace(loaded);
    impl_->changed = true;
    return {};
}

result<void> fabric_memory::save() {
    if (!impl_->changed || !impl_->accepted || impl_->path.empty()) return {};
    BANYAN_CHECK(write_file_atomic(impl_->path, impl_->accepted->text()));
    impl_->changed = false;
    return {};
}

std::shared_ptr<const known_fabric> fabric_memory::seen() const { return impl_->seen; }

std::vector<fabric_fault> fabric_memory::links_at(const std::vector<named_port>& ports) const {
    if (!impl_->accepted || ports.empty()) return {};
    const std::set<named_port> named(ports.begin(), ports.end());
    std::vector<fabric_fault> out;
    for (const auto& l : impl_->accepted->links())
        if (named.contains({l.a.id, l.a.port}) || named.contains({l.b.id, l.b.port}))
            out.push_back(is_switch(l.a) && is_switch(l.b) ? lost_link(l)
                                                           : lost_host_link(l, *impl_->accepted));
    return out;
}

result<std::vector<fabric_fault>> fabric_memory::compare(std::string_view text,
                                                         const std::vector<object>& for_good,
                                                         const fabric_files& beside) {
    BANYAN_TRY(const auto dump, topo::read_dump(std::string(text)));
    BANYAN_TRY(auto options, topo::read_side_files(beside.names, beside.site));
    options.created_unix_s = clock::wall_ms() / 1'000;
    const auto now = std::make_shared<const known_fabric>(topo::build_fabric(dump, options));
    if (!impl_->accepted) {
        impl_->accepted = *now;
        impl_->changed = true;
        impl_->seen = now;
        return std::vector<fabric_fault>{};
    }
    // What is given up is not missed; but nothing is given up for a look that is not believed.
    auto accepted = *impl_->accepted;
    bool changed = false;
    for (const auto& o : for_good) changed |= accepted.forget(o, *now);
    const auto gone = accepted.lacking_in(*now).gone.size();
    if (gone * 2 > accepted.nodes())
        return fail(
            errc::unavailable,
            fmt::format(
                "{} of {} nodes of the fabric are not seen: this host's own link is more likely at fault",
                gone, accepted.nodes()),
            "check the HCA that [fault] discover uses");
    impl_->accepted = std::move(accepted);
    impl_->changed |= changed;
    auto out = collapse(*impl_->accepted, impl_->accepted->lacking_in(*now));
    impl_->changed |= impl_->accepted->add(*now);
    impl_->seen = now;
    return out;
}

}  // namespace banyan::fault
