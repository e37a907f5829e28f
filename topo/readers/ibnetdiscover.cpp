// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/crc32c.hpp"
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

/// Whether the last line is the beginning of one: then the text was cut in it.
bool ends_in_a_line(std::string_view all, const dump& d) {
    if (all.back() == '\n') return false;
    const auto start = all.rfind('\n') + 1;
    const auto last = all.substr(start);
    const auto number = static_cast<std::uint32_t>(std::count(all.begin(), all.end(), '\n')) + 1;
    const bool record = last.starts_with("Switch") || last.starts_with("Ca") || last.starts_with("Rt") ||
                        (last[0] == '[' && (last.size() == 1 || (last[1] >= '0' && last[1] <= '9')));
    return record && !d.complaints.empty() && d.complaints.back().line == number;
}

}  // namespace

result<dump> read_ibnetdiscover(std::string text) {
    if (text.empty())
        return fail(errc::invalid_input, "the dump is empty",
                    "did ibnetdiscover fail? look at its error output");
    if (text.size() > max_dump_bytes)
        return fail(errc::invalid_input, fmt::format("the dump is larger than {} bytes", max_dump_bytes));
    dump out;
    out.crc = crc32c(std::as_bytes(std::span(text)));
    const bool binary = text.find('\0') != std::string::npos;
    disarm(text);
    out.text = std::make_shared<const std::string>(std::move(text));
    const std::string_view all = *out.text;
    if (is_port_list(all))
        read_port_list(all, out);
    else if (read_records(all, out) > 0)
        return fail(errc::invalid_input, "this is the output of ibnetdiscover --diff, not a fabric",
                    "give a whole dump; banyan-topo diff compares two of them");
    if (out.nodes.empty()) return not_ibnetdiscover(all, binary);
    // ibnetdiscover prints every node that it prints as a peer. A few that lack are dirt, which the model
    // reports; a fifth of them is a lost end.
    const auto missing = missing_records(out);
    const bool torn = ends_in_a_line(all, out) || (all.back() != '\n' && missing > 0);
    if (torn || missing > out.nodes.size() / 5)
        return fail(
            errc::invalid_input,
            fmt::format("the dump is cut after line {}: {} nodes are named by their neighbours and have "
                        "no record",
                        std::count(all.begin(), all.end(), '\n'), missing),
            "run ibnetdiscover again and keep its whole output");
    return out;
}

}  // namespace banyan::topo
