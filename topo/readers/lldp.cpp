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
#include <fmt/format.h>

#include "topo/readers/lldp_tree.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

constexpr std::string_view mark = ": lldp.";

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
        const auto key = line.substr(0, sign), value = line.substr(sign + 1);
        if (key.ends_with(".via")) {
            lldp_neighbour n;
            n.local = local;
            n.port = key.substr(0, key.size() - 4);
            n.line = number;
            told_.all.push_back(n);
            told_.reported.try_emplace(local, number);
        }
        if (told_.all.empty() || told_.all.back().local != local) return;
        auto& to = told_.all.back();
        if (key.ends_with(".chassis.name")) to.name = value;
        if (key.ends_with(".chassis.mac")) to.chassis = value;
        if (key.ends_with(".chassis.Bridge.enabled") || key.ends_with(".chassis.Router.enabled"))
            to.forwards |= value == "on";
        if (key.ends_with(".port.mac")) to.mac_port = true;
        // A NIC's description is its interface's name, unless somebody has written another.
        if (key.ends_with(".port.ifname") || (key.ends_with(".port.mac") && to.peer_port.empty()) ||
            (key.ends_with(".port.descr") && to.mac_port && value.find(' ') == std::string_view::npos))
            to.peer_port = value;
    }

    const lldp_neighbours& told() const { return told_; }

  private:
    /// A line that is no key: a description that goes on, or what a system says that has no lldpcli.
    void take_other(std::uint32_t number, std::string_view line) {
        const auto local = line.substr(0, line.find(": "));
        if (local.size() == line.size() || told_.reported.contains(local)) return;
        complain(out_, number, 1, fmt::format("{} tells no neighbour", line.substr(0, 80)));
    }

    dump& out_;
    lldp_neighbours told_;
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
