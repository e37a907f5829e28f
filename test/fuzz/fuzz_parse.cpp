// SPDX-License-Identifier: BSD-3-Clause
//
// Any log, in every format: what comes out is JSON of one line, whatever the bytes are.
#include "fault/parse/any_log.hpp"
#include "fault/sources/line_splitter.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::fault;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::as_text(data, size);
    for (int format = 0; format <= static_cast<int>(log_format::nccl); ++format) {
        any_log log(static_cast<log_format>(format));
        line_splitter lines(4096);
        std::uint64_t events = 0;
        const auto take = [&](std::string_view line, std::uint64_t) {
            log.line(line, [&](const reading& r) {
                ++events;
                const auto shown = json_line(r);
                fuzz::must(shown.find('\n') == std::string::npos && shown.starts_with('{'));
                fuzz::must(!r.kind.empty() && !r.action.empty() && r.text.size() <= 512);
            });
        };
        lines.feed(text, take);
        fuzz::must(events == log.seen().events);
        // A line gives one event at most, but for a record of three lines.
        fuzz::must(log.seen().events <= log.seen().lines * 3);
    }
    return 0;
}
