// SPDX-License-Identifier: BSD-3-Clause
//
// Every parser of topo that reads what somebody else wrote: dumps, snapshots, plans, shapes, AdminComment
// lines.
#include <cstdlib>

#include <banyan/topo/plan.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>

using namespace banyan::topo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto dump = read_ibnetdiscover(std::string(text))) {
        const auto f = build_fabric(*dump);
        // Whatever could be built can be stored and read back.
        if (!decode_snapshot(encode_snapshot(f))) std::abort();
    }
    if (const auto f = decode_snapshot(text)) (void)find_host(*f, "n01");
    if (const auto p = parse_plan(text); p && !parse_plan(to_text(*p))) std::abort();
    if (const auto s = parse_shape(text); s && s->ranks() > max_ranks) std::abort();
    (void)parse_admin_comment(text);
    return 0;
}
