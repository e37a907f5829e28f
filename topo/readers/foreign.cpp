// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/foreign.hpp"

#include <fmt/format.h>

namespace banyan::topo {

std::unexpected<error> not_a_dump(std::string_view text, bool binary) {
    struct mark {
        std::string_view text;
        std::string_view tool;
    };
    static constexpr mark marks[] = {{"Port xmit", "perfquery"},
                                     {"PortXmitData", "perfquery"},
                                     {"Counter", "ibqueryerrors"},
                                     {"nodes checked", "ibqueryerrors"},
                                     {"GUID 0x", "ibqueryerrors"},
                                     {"CA 'mlx", "ibstat"},
                                     {"Unicast lids", "dump_lfts or dump_fts"},
                                     {" ports ", "ibnetdiscover -l"},
                                     {"<html", "a web page"},
                                     {"<!DOCTYPE", "a web page"},
                                     {"ibpanic", "a tool that failed"},
                                     {"ibwarn", "a tool that failed"}};
    // Of other networks, and of other views of this one.
    static constexpr mark others[] = {{"LLDP neighbors", "LLDP (Ethernet, RoCE)"},
                                      {"\"lldp\"", "LLDP (Ethernet, RoCE)"},
                                      {"lldp.", "LLDP of one system, whose name is not in it"},
                                      {"RemotePort", "a switch's table of LLDP (Ethernet, RoCE)"},
                                      {"Number of HFIs", "opafabricinfo (Omni-Path)"},
                                      {";SW;", "a list of ports (Omni-Path)"},
                                      {"Rate;LinkDetails", "opaextractlink (Omni-Path)"},
                                      {"NodeName=", "slurm.conf, which has no topology"}};
    const auto start = text.substr(0, 4096);
    for (const auto& m : others)
        if (!binary && start.find(m.text) != std::string_view::npos)
            return fail(errc::invalid_input, fmt::format("this looks like {}: that is not read", m.tool),
                        "give on InfiniBand the output of ibnetdiscover; on Omni-Path opareport -o links; on "
                        "Ethernet what clush or pdsh prints with lldpcli -f keyvalue show neighbors; or "
                        "Slurm's topology.conf or topology.yaml");
    const auto hint =
        "give the output of ibnetdiscover or iblinkinfo, ibdiagnet2.db_csv or .lst, opareport -o links, "
        "lldpcli "
        "behind clush, UFM's list of links, or Slurm's topology.conf or topology.yaml";
    if (binary) return fail(errc::invalid_input, "the dump is a binary file", hint);
    for (const auto& m : marks)
        if (start.find(m.text) != std::string_view::npos)
            return fail(errc::invalid_input,
                        fmt::format("no node of a fabric in the text: it looks like {}", m.tool), hint);
    return fail(errc::invalid_input, "no node of a fabric in the text", hint);
}

}  // namespace banyan::topo
