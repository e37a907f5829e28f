// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel's log: any user can have lines in it. A record of the device that begins otherwise than the GPU
// driver begins its own is no fault, whatever follows.
#include <algorithm>
#include <array>

#include "fault/catalog/xid.hpp"
#include "fault/event.hpp"
#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/kernel_log.hpp"
#include "fault/sources/line_splitter.hpp"
#include "fault/sources/symptom_lines.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::fault;
using fuzz::must;

namespace {

bool begins_as_the_driver_does(std::string_view text) {
    static constexpr std::array<std::string_view, 2> starts{"NVRM: ", "nvidia-nvswitch"};
    return std::any_of(starts.begin(), starts.end(), [&](auto s) { return text.starts_with(s); });
}

void read(std::string_view text, kmsg_trust trust, bool device) {
    kernel_log log(trust, device);
    kernel_parser parser;
    line_splitter lines(1024);
    const auto take = [&](std::string_view line, std::uint64_t) {
        log.read(line, [&](std::string_view said) {
            const auto found = parser.line(said);
            if (!found.fault) return;
            must(begins_as_the_driver_does(said) || find_symptom_line(said).has_value());
            must(found.fault->device.size() <= 64);
            // Of the device: in the record itself, not in what a user made follow in it.
            if (device) must(line.substr(line.find(';') + 1).starts_with(said.substr(0, 4)));
            (void)precedence_of(*found.fault);
            (void)calls_for_seal(*found.fault);
            (void)catalog::find_xid(found.fault->code);
        });
    };
    // In two pieces, wherever they are cut.
    const auto half = text.size() / 2;
    lines.feed(text.substr(0, half), take);
    lines.feed(text.substr(half), take);
    must(lines.position() <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::as_text(data, size);
    for (const auto trust : {kmsg_trust::kernel, kmsg_trust::syslog, kmsg_trust::injected})
        for (const bool device : {true, false}) read(text, trust, device);
    (void)take_bdf(text);
    return 0;
}
