// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/metrics.hpp"

#include <string>
#include <utility>

#include "ckptd/daemon/job_agreement.hpp"
#include "common/log.hpp"

namespace banyan::ckpt {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using label = prometheus::ClientMetric::Label;

class collection {
  public:
    std::vector<MetricFamily> out;

    void gauge(const char* name, const char* help, std::vector<label> labels, double value) {
        add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
    }
    void counter(const char* name, const char* help, std::vector<label> labels, std::uint64_t value) {
        add(name, help, MetricType::Counter, std::move(labels)).counter.value = static_cast<double>(value);
    }

  private:
    // A family stands together, whichever job its numbers are of.
    prometheus::ClientMetric& add(const char* name, const char* help, MetricType type,
                                  std::vector<label> labels) {
        const auto [at, fresh] = places_.try_emplace(name, out.size());
        if (fresh) out.push_back({name, help, type, {}});
        auto& metric = out[at->second].metric.emplace_back();
        metric.label = std::move(labels);
        return metric;
    }
    std::map<std::string, std::size_t> places_;
};

std::vector<label> with(std::vector<label> labels, label one) {
    labels.push_back(std::move(one));
    return labels;
}

void add_steps(collection& c, const session& s, const std::vector<label>& of) {
    const auto& rules = s.agreed->rules();
    const std::pair<const char*, std::optional<copy_key>> tiers[] = {
        {"memory", rules.committed(agreement::level::memory)},
        {"replicated", rules.committed(agreement::level::replicated)},
        {"storage", s.durable}};
    for (const auto& [tier, key] : tiers)
        if (key)
            c.gauge("banyan_ckpt_step", "Newest step of the job that is complete, by tier",
                    with(of, {"tier", tier}), static_cast<double>(key->step));
    if (s.request.flush != 0)
        c.gauge("banyan_ckpt_storage_lag_steps", "Steps that the newest one in storage is behind", of,
                static_cast<double>(durable_lag(s)));
    c.gauge("banyan_ckpt_stalled", "1 while saves of this node's ranks wait for other nodes", of,
            s.stalled ? 1 : 0);
    c.gauge("banyan_ckpt_pending_buffers", "Saved states on their way to a second copy", of, s.pending);
}

void add_counters(collection& c, const session& s, const std::vector<label>& of) {
    const auto& b = s.bytes;
    const std::pair<const char*, std::uint64_t> moved[] = {{"storage_written", b.storage_written},
                                                           {"storage_read", b.storage_read},
                                                           {"peer_sent", b.peer_sent},
                                                           {"peer_received", b.peer_received},
                                                           {"memory_restored", b.memory_restored}};
    for (const auto& [what, bytes] : moved)
        c.counter("banyan_ckpt_bytes_total", "Bytes of ranks' states, by where they went",
                  with(of, {"what", what}), bytes);
    const std::pair<const char*, std::uint64_t> saves[] = {
        {"sealed", b.seals}, {"torn", b.torn}, {"skipped", b.skipped}};
    for (const auto& [outcome, count] : saves)
        c.counter("banyan_ckpt_saves_total", "Saves of this node's ranks, by outcome",
                  with(of, {"outcome", outcome}), count);
    const std::pair<const char*, std::uint64_t> flushes[] = {
        {"done", b.flushes}, {"failed", b.flush_failures}, {"skipped", b.flushes_skipped}};
    for (const auto& [outcome, count] : flushes)
        c.counter("banyan_ckpt_flushes_total",
                  "Flushes to storage, by outcome; done and skipped where they are led",
                  with(of, {"outcome", outcome}), count);
    c.counter("banyan_ckpt_commits_total", "Steps that became complete", of, b.commits);
    c.counter("banyan_ckpt_deaths_total", "Processes of ranks that ended without bck_finalize", of, b.deaths);
    const std::pair<const char*, std::uint64_t> damages[] = {
        {"memory", b.damaged_here}, {"arrival", b.damaged_on_arrival}, {"storage", b.damaged_in_storage}};
    for (const auto& [where, count] : damages)
        c.counter("banyan_ckpt_damaged_total", "Checksums that did not hold, by where that was found",
                  with(of, {"where", where}), count);
    c.counter("banyan_ckpt_refused_total", "Messages of an older generation", of, b.refused);
    c.counter("banyan_ckpt_warnings_total", "Warnings about the job", of, s.warnings.count);
}

}  // namespace

std::vector<MetricFamily> numbers_of(const std::map<std::uint64_t, session_ptr>& sessions,
                                     const memory_budget& memory) {
    collection c;
    std::size_t open = 0;
    for (const auto& [number, s] : sessions) open += s->detached ? 0 : 1;
    constexpr auto about_sessions = "Jobs with memory here: open, or detached until their lease ends";
    c.gauge("banyan_ckpt_sessions", about_sessions, {{"state", "open"}}, static_cast<double>(open));
    c.gauge("banyan_ckpt_sessions", about_sessions, {{"state", "detached"}},
            static_cast<double>(sessions.size() - open));
    c.gauge("banyan_ckpt_memory_limit_bytes", "Memory that checkpoints may take on this node", {},
            static_cast<double>(memory.limit()));
    c.gauge("banyan_ckpt_memory_used_bytes", "Memory that they take", {}, static_cast<double>(memory.used()));
    for (const auto kind : {page_kind::reserved, page_kind::transparent, page_kind::ordinary})
        c.gauge("banyan_ckpt_memory_pages_bytes",
                "Memory that they take, by the pages that it lies in: reserved and transparent are huge ones",
                {{"pages", std::string(page_kind_names[static_cast<std::size_t>(kind)])}},
                static_cast<double>(memory.pages.bytes(kind)));
    for (const auto& [number, job] : sessions)
        for (const auto& s : with_states(job)) {
            std::vector<label> of{{"job", std::to_string(number)}};
            if (!s->state.empty()) of.push_back({"state", s->state});
            c.gauge("banyan_ckpt_job_memory_bytes", "Memory that the job's states and copies take", of,
                    static_cast<double>(s->memory_bytes()));
            add_steps(c, *s, of);
            add_counters(c, *s, of);
        }
    return std::move(c.out);
}

std::shared_ptr<metrics> metrics::serve(const std::string& address) {
    auto out = std::make_shared<metrics>();
    const auto where = out->server_.open(address, out, "ckptd");
    if (where)
        spdlog::info("metrics on {}", *where);
    else
        spdlog::error("{}", where.error().text());
    return where ? out : nullptr;
}

void metrics::tell(std::vector<MetricFamily> now) {
    const std::scoped_lock held(lock_);
    newest_ = std::move(now);
}

std::vector<MetricFamily> metrics::Collect() const {
    const std::scoped_lock held(lock_);
    return newest_;
}

}  // namespace banyan::ckpt
