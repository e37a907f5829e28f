// SPDX-License-Identifier: BSD-3-Clause
//
// What lldpcli of lldpd prints as keyvalue on many systems, each line behind the name of the system that
// printed it, as clush and pdsh put it there:
//
//     gpu001: lldp.ens10f0np0.chassis.name=leaf01
//     gpu001: lldp.ens10f0np0.chassis.Bridge.enabled=on
//     gpu001: lldp.ens10f0np0.port.ifname=swp3s0
//
// Hosts alone tell their leaves; with the switches' output the whole tree is known.
#include <utility>

#include <fmt/format.h>

#include "topo/readers/lldp_tree.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

constexpr std::string_view mark = ": lldp.";

/// "eth0.100" of "eth0.100.chassis.name", and what stands behind it.
std::pair<std::string_view, std::string_view> port_and_field(std::string_view key) {
    for (const std::string_view part : {".chassis.", ".port."})
        if (const auto at = key.find(part); at != key.npos) return {key.substr(0, at), key.substr(at + 1)};
    const auto last = key.rfind('.');
    return last == key.npos ? std::pair(key, std::string_view())
                            : std::pair(key.substr(0, last), key.substr(last + 1));
}

class lldp_reader {
  public:
    explicit lldp_reader(dump& out) : out_(out) {}

    void take(std::uint32_t number, std::string_view line) {
        const auto at = line.find(mark);
        if (at == std::string_view::npos) return take_other(number, line);
        const auto local = line.substr(0, at);
        line.remove_prefix(at + mark.size());
        const auto sign = line.find('=');
        if (sign == std::string_view::npos) return;  // a description that goes on
        const auto value = line.substr(sign + 1);
        const auto [port, field] = port_and_field(line.substr(0, sign));
        const std::pair place(local, port);
        if (field == "via") {
            lldp_neighbour n;
            n.local = local;
            n.port = port;
            n.line = number;
            // Lines of several systems may be mixed.
            open_[place] = told_.all.size();
            told_.all.push_back(n);
            told_.reported.try_emplace(local, number);
        }
        if (const auto to = open_.find(place); to != open_.end())
            take_field(told_.all[to->second], field, value);
    }

    const lldp_neighbours& told() const { return told_; }

  private:
    static void take_field(lldp_neighbour& to, std::string_view field, std::string_view value) {
        if (field == "chassis.name") to.name = value;
        for (const std::string_view id : {"chassis.mac", "chassis.local", "chassis.ifname", "chassis.ip"})
            if (field == id) to.chassis = value;
        if (field == "chassis.Bridge.enabled" || field == "chassis.Router.enabled")
            to.forwards = to.forwards.value_or(false) || value == "on";
        if (field == "port.mac") to.mac_port = true;
        // A NIC's description is its interface's name, unless somebody has written another.
        if (field == "port.ifname" || (field == "port.mac" && to.peer_port.empty()) ||
            (field == "port.descr" && to.mac_port && value.find(' ') == std::string_view::npos))
            to.peer_port = value;
    }

    /// A line that is no key: a description that goes on, or what a system says that has no lldpcli.
    void take_other(std::uint32_t number, std::string_view line) {
        if (line.starts_with("lldp."))
            return complain(out_, number, 1, "the line lacks the name of the system that printed it");
        const auto local = line.substr(0, line.find(": "));
        if (local.size() == line.size() || told_.reported.contains(local)) return;
        complain(out_, number, 1, fmt::format("{} tells no neighbour", line.substr(0, 80)));
    }

    dump& out_;
    lldp_neighbours told_;
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> open_;  ///< by system and port
};

}  // namespace

bool is_lldp(std::string_view text) {
    return any_early_line(text,
                          [](std::string_view line) { return line.find(mark) != std::string_view::npos; });
}

result<void> read_lldp(std::string_view text, dump& out) {
    lldp_reader r(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) { r.take(number, line); });
    return read_lldp_tree(r.told(), out);
}

}  // namespace banyan::topo
