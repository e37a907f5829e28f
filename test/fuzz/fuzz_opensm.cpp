// SPDX-License-Identifier: BSD-3-Clause
//
// The subnet manager's log, in which node descriptions stand that any host can set.
#include "fault/fabric/manager.hpp"
#include "fault/sources/line_splitter.hpp"
#include "fault/sources/opensm_log.hpp"
#include "fault/sources/process_job.hpp"
#include "fault/sources/ufm_log.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fault::opensm_parser parser;
    fault::line_splitter lines(1024);
    lines.feed(fuzz::as_text(data, size), [&](std::string_view line, std::uint64_t) {
        const auto event = parser.line(line);
        fuzz::must(!event || event->text.size() <= 4096);
        const auto ufm = fault::ufm_line(line);
        fuzz::must(!ufm || (ufm->text.size() <= 4096 && ufm->ports.size() % 2 == 0));
    });
    // What stands beside it: the manager's own answer, and whose job a process is.
    command_output said;
    said.text = fuzz::as_text(data, size);
    const auto look = fault::read_sminfo(said);
    fuzz::must(look.words.size() <= 4096 &&
               (look.answer != fault::manager_look::said::unknown || look.who.guid == 0));
    const auto group = fault::job_in_cgroup(said.text);
    fuzz::must(!group || (group->job == 0) == group->step.starts_with('/'));
    return 0;
}
