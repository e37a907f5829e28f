// SPDX-License-Identifier: BSD-3-Clause
//
// What tools tell of counters, firmware and subnet managers, put on a fabric; and the limits of a site.
#include <banyan/topo/health.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>

#include "test/fuzz/fuzz_input.hpp"

using namespace banyan::topo;

namespace {

const fabric& small() {
    static const fabric f = build_fabric(*read_dump(
        "vendid=0x2c9\nSwitch\t40 \"S-0000000000000051\"\t\t# \"leaf\" enhanced port 0 lid 3 lmc 0\n"
        "[1]\t\"H-00000000000000a1\"[1](a2) \t\t# \"n1 mlx5_0\" lid 4 4xHDR\n"
        "[2]\t\"H-00000000000000b1\"[1](b2) \t\t# \"n2 mlx5_0\" lid 5 4xHDR\n\n"
        "vendid=0x2c9\nCa\t1 \"H-00000000000000a1\"\t\t# \"n1 mlx5_0\"\n"
        "[1](a2) \t\"S-0000000000000051\"[1]\t\t# lid 4 lmc 0 \"leaf\" lid 3 4xHDR\n\n"
        "vendid=0x2c9\nCa\t1 \"H-00000000000000b1\"\t\t# \"n2 mlx5_0\"\n"
        "[1](b2) \t\"S-0000000000000051\"[2]\t\t# lid 5 lmc 0 \"leaf\" lid 3 4xHDR\n\n"));
    return f;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = banyan::fuzz::as_text(data, size);
    health h;
    if (read_health(std::string(text), h)) {
        auto f = small();
        const auto taken = apply_health(f, h);
        banyan::fuzz::must(taken.ports + taken.strangers <= h.ports.size());
        banyan::fuzz::must(decode_snapshot(encode_snapshot(f)).has_value());
    }
    (void)read_error_limits(text, "limits");
    return 0;
}
