// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/crc32c.hpp"
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

/// Any host names itself, and its name ends on terminals and in logs: control characters (C1, which UTF-8 has
/// as 0xC2 0x80 to 0xC2 0x9F, too) become question marks. Lines stay lines.
void disarm(std::string& text) {
    const auto is_control = [](unsigned char c) {
        return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (is_control(c)) text[i] = '?';
        if (c == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80)
            text[i] = text[i + 1] = '?';
    }
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
    const bool torn = all.back() != '\n' && missing + out.complaints.size() > 0;
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
