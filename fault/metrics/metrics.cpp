// SPDX-License-Identifier: BSD-3-Clause
#include "fault/metrics/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "common/metrics_server.hpp"
#include "fault/catalog/symptom.hpp"

namespace banyan::fault {

using namespace prometheus;

struct metrics::impl {
    std::shared_ptr<Registry> registry = std::make_shared<Registry>();
    Family<Counter>& lines =
        BuildCounter().Name("banyan_fault_log_lines_total").Help("Kernel log lines read").Register(*registry);
    Counter& lost = BuildCounter()
                        .Name("banyan_fault_log_lines_lost_total")
                        .Help("Kernel log lines that were overwritten before they were read")
                        .Register(*registry)
                        .Add({});
    Family<Counter>& events = BuildCounter()
                                  .Name("banyan_fault_events_total")
                                  .Help("Fault lines understood, by kind and number")
                                  .Register(*registry);
    Family<Counter>& incidents = BuildCounter()
                                     .Name("banyan_fault_incidents_total")
                                     .Help("Incidents opened, by reason")
                                     .Register(*registry);
    Family<Counter>& actions = BuildCounter()
                                   .Name("banyan_fault_actions_total")
                                   .Help("Actions, by what and outcome")
                                   .Register(*registry);
    Family<Gauge>& gauges = BuildGauge()
                                .Name("banyan_fault_queued_events")
                                .Help("Events not yet acknowledged")
                                .Register(*registry);
    Family<Gauge>& blind = BuildGauge()
                               .Name("banyan_fault_blind")
                               .Help("Things of this node that the agent wants to look at, and cannot")
                               .Register(*registry);
    Family<Gauge>& agents_family =
        BuildGauge().Name("banyan_fault_agents").Help("Agents connected").Register(*registry);
    Family<Gauge>& open_family =
        BuildGauge().Name("banyan_fault_incidents_open").Help("Incidents not closed").Register(*registry);
    Family<Gauge>& reasons = BuildGauge()
                                 .Name("banyan_fault_incidents_by_reason")
                                 .Help("Incidents not closed, by reason")
                                 .Register(*registry);
    Family<Gauge>& states =
        BuildGauge()
            .Name("banyan_fault_state")
            .Help("1 for each state that the controller is in: held_incidents counts them")
            .Register(*registry);
    std::map<std::string, Gauge*> known_reasons;
    Histogram& latency =
        BuildHistogram()
            .Name("banyan_fault_line_to_incident_seconds")
            .Help("From the log line to the incident")
            .Register(*registry)
            .Add({}, Histogram::BucketBoundaries{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10});
    Counter& clean = lines.Add({{"state", "clean"}});
    Counter& dirty = lines.Add({{"state", "dirty"}});
    Gauge& queued = gauges.Add({});
    Gauge& agents = agents_family.Add({});
    Gauge& open = open_family.Add({});
    Gauge& breaker = states.Add({{"state", "breaker_open"}});
    Gauge& dry = states.Add({{"state", "dry_run"}});
    Gauge& wrong = states.Add({{"state", "policy_wrong"}});
    Gauge& held = states.Add({{"state", "held_incidents"}});
    metrics_server server;
};

metrics::metrics() : impl_(std::make_unique<impl>()) {}
metrics::~metrics() = default;

result<std::string> metrics::serve(const std::string& address) {
    return impl_->server.open(address, impl_->registry, "fault");
}

std::string metrics::text() const { return TextSerializer().Serialize(impl_->registry->Collect()); }

void metrics::count_line(bool dirty) { (dirty ? impl_->dirty : impl_->clean).Increment(); }

void metrics::count_lost(std::uint64_t lines) { impl_->lost.Increment(static_cast<double>(lines)); }

void metrics::count_event(const kernel_fault& fault) {
    static constexpr const char* kinds[] = {"xid", "sxid", "bus_loss", "symptom"};
    const auto* row = fault.kind == fault_kind::symptom ? catalog::find_symptom(fault.code) : nullptr;
    // The number comes from a log: only plausible ones become labels.
    const auto number = row                    ? std::string(row->name)
                        : fault.code < 100'000 ? std::to_string(fault.code)
                                               : "other";
    impl_->events.Add({{"kind", kinds[static_cast<std::size_t>(fault.kind)]}, {"code", number}}).Increment();
}

void metrics::count_incident(const std::string& reason, double seconds) {
    impl_->incidents.Add({{"reason", reason}}).Increment();
    impl_->latency.Observe(seconds);
}

void metrics::count_action(const std::string& what, bool done) {
    impl_->actions.Add({{"what", what}, {"outcome", done ? "done" : "not_done"}}).Increment();
}

void metrics::set_queue(std::size_t events) { impl_->queued.Set(static_cast<double>(events)); }
void metrics::set_blind(const std::string& of, std::size_t things) {
    impl_->blind.Add({{"of", of}}).Set(static_cast<double>(things));
}
void metrics::set_agents(std::size_t connected) { impl_->agents.Set(static_cast<double>(connected)); }
void metrics::set_open(std::size_t incidents) { impl_->open.Set(static_cast<double>(incidents)); }
void metrics::set_breaker(bool open) { impl_->breaker.Set(open); }
void metrics::set_dry_run(bool on) { impl_->dry.Set(on); }
void metrics::set_policy_wrong(bool wrong) { impl_->wrong.Set(wrong); }

void metrics::set_reasons(const std::map<std::string, std::size_t>& open, std::size_t held) {
    for (const auto& [reason, count] : open) {
        auto& gauge = impl_->known_reasons[reason];
        if (!gauge) gauge = &impl_->reasons.Add({{"reason", reason}});
    }
    for (auto& [reason, gauge] : impl_->known_reasons) {
        const auto it = open.find(reason);
        gauge->Set(it == open.end() ? 0 : static_cast<double>(it->second));
    }
    impl_->held.Set(static_cast<double>(held));
}

}  // namespace banyan::fault
