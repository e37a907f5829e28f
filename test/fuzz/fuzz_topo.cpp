// SPDX-License-Identifier: BSD-3-Clause
//
// What fabric tools and the site wrote: dumps, node-name maps, site files.
#include <banyan/topo/reader.hpp>
#include <banyan/topo/site.hpp>
#include <banyan/topo/snapshot.hpp>

#include "test/fuzz/fuzz_input.hpp"

using namespace banyan::topo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = banyan::fuzz::as_text(data, size);
    if (const auto dump = read_dump(std::string(text))) {
        const auto f = build_fabric(*dump);
        // Whatever could be built can be stored and read back.
        banyan::fuzz::must(decode_snapshot(encode_snapshot(f)).has_value());
    }
    (void)read_name_map(text);
    (void)read_site(text, "site.toml");
    return 0;
}
