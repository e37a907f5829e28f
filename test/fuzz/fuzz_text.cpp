// SPDX-License-Identifier: BSD-3-Clause
//
// What people type, host lists above all: a list that was read is written and read back as the same names.
#include "common/text.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::as_text(data, size);
    constexpr std::size_t most = 2000;
    if (const auto names = expand_hostlist(text, {most})) {
        fuzz::must(names->size() <= most);
        const auto again = expand_hostlist(compress_hostlist(*names), {most});
        fuzz::must(again && *again == *names);
    }
    (void)parse_number(text);
    (void)parse_bytes(text);
    (void)parse_duration(text);
    if (const auto pairs = parse_key_values(text)) fuzz::must(pairs->size() <= size);
    if (size < 100) (void)nearest(text, {"parallel", "spares", "dir"});
    (void)trim(text);
    return 0;
}
