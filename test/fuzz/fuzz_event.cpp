// SPDX-License-Identifier: BSD-3-Clause
//
// What an agent tells the controller, through incidents to decisions; and what the history kept.
#include <nlohmann/json.hpp>

#include "common/wire.hpp"
#include "fault/event.hpp"
#include "fault/incident/engine.hpp"
#include "fault/policy/limiter.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::fault;
using fuzz::must;

namespace {

/// As it is sent or kept: a number that was signed in memory is read as what its digits are.
nlohmann::json sent(const nlohmann::json& what) {
    return nlohmann::json::parse(what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    engine incidents;
    limiter limits{policy_limits{}};
    std::int64_t now = 1'000'000;
    while (!in.empty()) {
        const auto text = in.text();
        const auto meta = wire::decode_meta(std::as_bytes(std::span(text)));
        if (!meta) continue;
        if (const auto kept = incident_from(*meta)) must(incident_from(sent(to_json(*kept))).has_value());
        const auto e = event_from(*meta);
        if (!e) continue;
        const auto again = event_from(sent(to_json(*e)));
        must(again && again->key() == e->key() && again->fault.code == e->fault.code);
        const auto outcome = incidents.absorb(*e, now += 1000);
        if (outcome.number == 0) continue;
        const auto* incident = incidents.find(outcome.number);
        must(incident != nullptr && incident_from(sent(to_json(*incident))).has_value());
        (void)limits.narrow(shipped_policy().decide(*incident, incidents.all()), *incident, true, 4, now);
    }
    return 0;
}
