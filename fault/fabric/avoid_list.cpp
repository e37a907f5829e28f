// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/avoid_list.hpp"

#include <algorithm>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

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

result<std::shared_ptr<const topo::fabric>> spare_links::read() {
    const std::scoped_lock held(guard_);
    struct stat now {};
    stamp found{};
    // It is replaced, never written into.
    if (::stat(path_.c_str(), &now) == 0)
        found = {static_cast<std::int64_t>(now.st_dev), static_cast<std::int64_t>(now.st_ino), now.st_size,
                 now.st_mtim.tv_sec * 1'000'000'000 + now.st_mtim.tv_nsec};
    if (fabric_ && found == is_) return fabric_;
    fabric_.reset();
    ++reads_;
    BANYAN_TRY(auto loaded, topo::load_snapshot(path_));
    fabric_ = std::make_shared<const topo::fabric>(std::move(loaded));
    is_ = found;
    return fabric_;
}

result<void> spare_links::room(const std::vector<cable>& all, const cable& one) {
    if (percent_ == 0) return fail(errc::exhausted, "avoid_percent is 0");
    if (all.size() >= topo::max_avoided_links)
        return fail(errc::exhausted, fmt::format("{} links are kept off already", all.size()));
    BANYAN_TRY(const auto fabric, read());
    return topo::room_to_avoid(*fabric, links_of(all), link_of(one), percent_);
}

result<void> write_avoided(const std::string& path, const std::vector<cable>& all) {
    return write_file_atomic(path, topo::avoid_text(links_of(all)));
}

std::vector<cable> avoided_in(const std::string& path) {
    std::vector<cable> out;
    const auto text = read_file(path, topo::max_avoid_bytes);
    if (!text) return out;
    const auto links = topo::read_avoid(*text);
    if (!links) return out;
    for (const auto& l : *links) {
        const auto number = number_of(l.why);
        if (!number) continue;
        cable one{*number, {}};
        for (const auto& p : {l.a, l.b})
            if (p.id != 0) one.ends.push_back({{}, {}, p.port, p.id});
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace banyan::fault
