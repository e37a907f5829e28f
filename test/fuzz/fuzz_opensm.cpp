// SPDX-License-Identifier: BSD-3-Clause
//
// The subnet manager's log, in which node descriptions stand that any host can set.
#include "fault/sources/line_splitter.hpp"
#include "fault/sources/opensm_log.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fault::opensm_parser parser;
    fault::line_splitter lines(1024);
    lines.feed(fuzz::as_text(data, size), [&](std::string_view line, std::uint64_t) {
        const auto event = parser.line(line);
        fuzz::must(!event || event->text.size() <= 4096);
    });
    return 0;
}
