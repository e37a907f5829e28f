// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/avoid_list.hpp"

#include <algorithm>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "common/file.hpp"

namespace banyan::fault {
namespace {

topo::avoided_link link_of(const cable& c) {
    topo::avoided_link out;
    incident i;
    i.number = c.incident;
    out.why = i.id();
    const auto port = [](const end_point& e) {
        return topo::link_port{e.guid, static_cast<std::uint16_t>(e.port)};
    };
    if (!c.ends.empty()) out.a = port(c.ends.front());
    if (c.ends.size() > 1) out.b = port(c.ends[1]);
    return out;
}

std::vector<topo::avoided_link> links_of(const std::vector<cable>& all) {
    std::vector<topo::avoided_link> out;
    for (const auto& c : all) out.push_back(link_of(c));
    return out;
}

}  // namespace

cable cable_of(const incident& i) {
    cable out{i.number, i.object.ends};
    std::erase_if(out.ends, [](const end_point& e) { return e.guid == 0 || e.port == 0 || e.port > 254; });
    return out;
}

result<void> can_spare(const std::string& snapshot, const std::vector<cable>& all, const cable& one,
                       std::uint32_t percent) {
    if (percent == 0) return fail(errc::exhausted, "avoid_percent is 0");
    if (all.size() >= topo::max_avoided_links)
        return fail(errc::exhausted, fmt::format("{} links are kept off already", all.size()));
    BANYAN_TRY(const auto fabric, topo::load_snapshot(snapshot));
    return topo::room_to_avoid(fabric, links_of(all), link_of(one), percent);
}

result<void> write_avoided(const std::string& path, const std::vector<cable>& all) {
    return write_file_atomic(path, topo::avoid_text(links_of(all)));
}

std::vector<std::uint64_t> incidents_in(const std::string& path) {
    std::vector<std::uint64_t> out;
    const auto text = read_file(path, topo::max_avoid_bytes);
    if (!text) return out;
    const auto links = topo::read_avoid(*text);
    if (!links) return out;
    for (const auto& l : *links)
        if (const auto number = number_of(l.why)) out.push_back(*number);
    return out;
}

}  // namespace banyan::fault
