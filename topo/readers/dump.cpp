// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/crc32c.hpp"
#include "topo/readers/cut.hpp"
#include "topo/readers/disarm.hpp"
#include "topo/readers/foreign.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

/// Peers that are named by a port and have no record: the mark of a dump that was cut.
std::size_t missing_records(const dump& d) {
    std::vector<guid> known, peers;
    known.reserve(d.nodes.size());
    for (const auto& n : d.nodes) known.push_back(n.id);
    std::sort(known.begin(), known.end());
    // Each HCA is looked up once, switches many times: their repetitions are neighbours in the list.
    guid last = 0;
    for (const auto& p : d.ports)
        if (p.peer != last && !std::binary_search(known.begin(), known.end(), last = p.peer))
            peers.push_back(p.peer);
    std::sort(peers.begin(), peers.end());
    return static_cast<std::size_t>(std::unique(peers.begin(), peers.end()) - peers.begin());
}

enum class form {
    records,
    port_list,
    link_info,
    link_list,
    db_csv,
    topology_conf,
    topology_yaml,
    lldp,
    omni_path,
    ufm_links
};

form form_of(std::string_view text) {
    if (is_db_csv(text)) return form::db_csv;
    if (is_link_list(text)) return form::link_list;
    if (is_link_info(text)) return form::link_info;
    if (is_port_list(text)) return form::port_list;
    if (is_lldp(text)) return form::lldp;
    if (is_omni_path(text)) return form::omni_path;
    if (is_ufm_links(text)) return form::ufm_links;
    if (is_topology_yaml(text)) return form::topology_yaml;
    return is_topology_conf(text) ? form::topology_conf : form::records;
}

/// Whether the last line is the beginning of one: then the text was cut in it.
bool ends_in_a_line(std::string_view all, const dump& d, form f) {
    if (all.back() == '\n') return false;
    // The speed stands at the end: half of its digits are another speed.
    if (f == form::link_list) return true;
    const auto start = all.rfind('\n') + 1;
    const auto last = all.substr(start);
    const auto number = static_cast<std::uint32_t>(std::count(all.begin(), all.end(), '\n')) + 1;
    // Below the records a shell's prompt may stand.
    const bool record = f != form::records || last.starts_with("Switch") || last.starts_with("Ca") ||
                        last.starts_with("Rt") ||
                        (last[0] == '[' && (last.size() == 1 || (last[1] >= '0' && last[1] <= '9')));
    return record && std::any_of(d.complaints.begin(), d.complaints.end(), [&](const complaint& c) {
               return c.line == number || f == form::link_info;
           });
}

result<void> read_form(form f, std::string_view all, dump& out) {
    switch (f) {
        case form::port_list:
            read_port_list(all, out);
            break;
        case form::link_list:
            read_link_list(all, out);
            break;
        case form::db_csv:
            if (const auto open = read_db_csv(all, out); !open.empty())
                return fail(errc::invalid_input,
                            fmt::format("the dump is cut: its section {} does not end, or is missing",
                                        open.substr(0, 40)),
                            "copy the whole of ibdiagnet2.db_csv");
            if (out.ports.empty() && out.nodes.size() > 1)
                return fail(errc::invalid_input,
                            fmt::format("{} nodes and no link: the section LINKS is missing or empty",
                                        out.nodes.size()),
                            "copy the whole of ibdiagnet2.db_csv");
            break;
        case form::link_info:
            // Links between what is there are in it twice, others once.
            if (const auto strangers = read_link_info(all, out); strangers > out.nodes.size() / 5)
                return fail(errc::invalid_input,
                            fmt::format("{} links lead to nodes that are not in the text", strangers),
                            "run iblinkinfo again without options that leave nodes out, such as "
                            "--switches-only, and keep its whole output");
            break;
        case form::records:
            if (read_records(all, out) > 0)
                return fail(errc::invalid_input, "this is the output of ibnetdiscover --diff, not a fabric",
                            "give a whole dump; banyan-topo diff compares two of them");
            break;
        case form::topology_conf:
            return read_topology_conf(all, out);
        case form::topology_yaml:
            return read_topology_yaml(all, out);
        case form::lldp:
            return read_lldp(all, out);
        case form::omni_path:
            return read_omni_path(all, out);
        case form::ufm_links:
            return read_ufm_links(all, out);
    }
    return {};
}

}  // namespace

result<dump> read_dump(std::string text) {
    if (text.empty())
        return fail(errc::invalid_input, "the dump is empty", "did the tool fail? look at its error output");
    if (text.size() > max_dump_bytes)
        return fail(errc::invalid_input, fmt::format("the dump is larger than {} bytes", max_dump_bytes));
    dump out;
    out.crc = crc32c(std::as_bytes(std::span(text)));
    const bool binary = text.find('\0') != std::string::npos;
    disarm(text);
    out.text = std::make_shared<const std::string>(std::move(text));
    const std::string_view all = *out.text;
    const auto f = form_of(all);
    BANYAN_CHECK(read_form(f, all, out));
    if (out.nodes.empty() && f != form::records && !out.complaints.empty())
        return fail(errc::invalid_input,
                    fmt::format("nothing of it could be read; line {}: {}", out.complaints[0].line,
                                out.complaints[0].what),
                    "keep the tool's whole output as it is");
    if (out.nodes.empty()) return not_a_dump(all, binary);
    // No cut leaves its signs where each link stands once: those readers look for one themselves.
    if (out.untold.cables || f == form::omni_path || f == form::ufm_links) return out;
    // The tools print every node that they print as a peer. A few that lack are dirt, which the model
    // reports; a fifth of them is a lost end.
    const auto missing = missing_records(out);
    const auto lines = std::count(all.begin(), all.end(), '\n');
    const bool torn = ends_in_a_line(all, out, f) || (all.back() != '\n' && missing > 0);
    const auto signs = look_for_cut(out);
    // What could not be read is no proof.
    const auto of_last = out.complaints.empty() ? signs.of_last : 0;
    const auto lost = signs.missing + of_last;
    const auto from_one_end = signs.missing + signs.of_last + signs.elsewhere;
    if (torn || missing > out.nodes.size() / 5 || lost > signs.lines / 5)
        return fail(
            errc::invalid_input,
            fmt::format("the dump is cut after line {}: {} nodes are named by their neighbours and have "
                        "no record, and of {} links {} stand in it from one end alone",
                        lines, missing, from_one_end + (signs.lines - from_one_end) / 2, from_one_end),
            "run the tool again and keep its whole output");
    if (of_last > 0 && signs.elsewhere == 0)
        complain(out, static_cast<std::uint32_t>(lines), 1,
                 fmt::format("the dump seems to be cut after this line: {} links to \"{}\", the last node in "
                             "it, are missing there; run the tool again",
                             signs.of_last, signs.last->name));
    return out;
}

}  // namespace banyan::topo
