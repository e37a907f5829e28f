// SPDX-License-Identifier: BSD-3-Clause
//
// What a node's /proc and /sys may hold, and what is made of it: names that users gave, on terminals and in
// reasons of nodes.
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "common/utf8.hpp"
#include "sweep/drain.hpp"
#include "sweep/links.hpp"
#include "sweep/memory.hpp"
#include "sweep/mounts.hpp"
#include "sweep/print.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::sweep;
using fuzz::must;

namespace {

void fits_a_terminal(std::string_view table) {
    for (auto line : split(table, '\n')) {
        must(is_printable(line));
        std::size_t characters = 0;
        for (; !line.empty(); ++characters) line.remove_prefix(first_character(line).bytes);
        must(characters <= 100);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    const auto wanted = in.byte();
    (void)meminfo_bytes(in.rest(), "MemAvailable");
    const auto mounted = parse_mountinfo(in.rest());
    report all{{"mounts", {}}, {"links", {}}};
    for (const auto& m : mounted) add(all[0].found, judge_mount(m.point, mounted, in.byte()));
    std::vector<hca_port> ports;
    while (!in.empty() && ports.size() < 32) {
        hca_port p;
        for (auto* text : {&p.device, &p.port, &p.state, &p.phys_state, &p.rate, &p.layer, &p.error})
            *text = in.text();
        ports.push_back(std::move(p));
    }
    all[1].found = judge_ports(ports, wanted, wanted);
    must(all[1].found.is != verdict::fit || ports.size() >= wanted);
    const told t{"n01", reason_for(all), false, 0};
    must(t.slurm.size() <= 200 && is_printable(t.slurm));
    must(t.slurm.empty() == (overall(all) != verdict::unfit));
    fits_a_terminal(as_table(all, t));
    const auto back = nlohmann::json::parse(as_json_text(all, t));
    must(back["checks"].size() == 2);
    (void)finding_from(nlohmann::json::parse(in.rest(), nullptr, false));
    return 0;
}
