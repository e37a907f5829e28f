// SPDX-License-Identifier: BSD-3-Clause
//
// What the processes that look at the hardware print, whatever that is; and limits of counters as people
// write them.
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "fault/sources/gpu_facts.hpp"
#include "fault/sources/hca_links.hpp"
#include "fault/sources/hca_rates.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::fault;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::as_text(data, size);
    if (const auto limit = counter_limit_from(text)) {
        must(limit->counter.find('/') == std::string::npos);
        must(limit->within >= std::chrono::seconds(1) && limit->within <= std::chrono::hours(24));
    }
    const auto told = nlohmann::json::parse(text, nullptr, false);
    if (const auto ports = hardware::counters_from(told)) {
        hca_rates rates({{"symbol_error", 0, std::chrono::hours(1)}});
        const hca_rates::clock::time_point start{};
        must(rates.after_look(*ports, start).excess.empty());
        const auto found = rates.after_look(*ports, start + std::chrono::seconds(30));
        must(found.excess.empty());  // the same again
        must(hardware::counters_from(hardware::to_json(*ports)).has_value());
    }
    if (const auto e = hardware::hca_event_from(told)) {
        hca_links links;
        const auto fault = links.after(*e);
        must(!fault || is_printable(fault->device));
    }
    if (const auto gpus = hardware::gpu_answers_from(told)) {
        gpu_facts facts;
        for (int n = 0; n < 3; ++n)
            for (const auto& f : facts.after_look(*gpus).faults) must(!f.bdf.empty());
        must(hardware::gpu_answers_from(hardware::to_json(*gpus)).has_value());
    }
    return 0;
}
