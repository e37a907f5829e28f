// SPDX-License-Identifier: BSD-3-Clause
//
// Start, end, and what an administrator may ask for.
#include "fault/controller/controller.hpp"

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "fault/controller/absence.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/policy/policy_file.hpp"

namespace banyan::fault {

controller::controller(asio::io_context& io, asio::thread_pool& pool, config settings, policy rules,
                       std::shared_ptr<metrics> counters, std::unique_ptr<cluster> slurm)
    : io_(io),
      pool_(pool),
      config_(std::move(settings)),
      metrics_(std::move(counters)),
      slurm_(std::move(slurm)),
      records_(io, config_.correlation_window, metrics_),
      rules_(std::move(rules)),
      hearing_(records_, rules_, metrics_),
      limiter_(config_.limits()),
      avoidance_(io, pool, config_, records_),
      hub_(io, pool, config_, metrics_,
           {.cursor_of = [this](const std::string& node) { return records_.cursor_of(node); },
            .lost_ports = [this](const std::string& node) { return of_nodes_.lost_ports(node); },
            .events =
                [this](std::string node, std::vector<event> events, std::function<void()> kept) {
                    return take_events(std::move(node), std::move(events), std::move(kept));
                },
            .moved = [this](std::string node,
                            cursor where) { records_.move_cursor(std::move(node), std::move(where)); },
            .self_sealed = [this](std::string node, std::int64_t at,
                                  std::string text) { records_.note_self_seal(node, at, text); },
            .heard =
                [this](const std::string& node, bool here) {
                    if (!here) return silence_.gone(node, hub_.agents().size());
                    records_.note_agent(node);
                    silence_.back(node);
                    of_nodes_.back(node);
                }}),
      fabric_(io, pool, config_, records_, *slurm_,
              [this](std::uint64_t number, change what) { hear(number, what); }),
      of_nodes_(records_,
                {.boot_of = [this](const std::string& node) { return hub_.boot_of(node); },
                 .nvlink_domain_of = [this](const std::string& node) { return hub_.nvlink_domain_of(node); },
                 .hear = [this](std::uint64_t number, change what) { hear(number, what); },
                 .folded =
                     [this](const std::vector<std::uint64_t>& numbers) {
                         records_.after_folding(numbers, limiter_);
                     }}),
      silence_(io, pool, *slurm_, config_.ckptd_port,
               [this](const std::string& node, const std::string& words) { of_nodes_.silent(node, words); }),
      verifier_{{io, pool, *slurm_, records_, config_.verify,
                 [this](std::uint64_t number, const job_status& job, const holders& found) {
                     of_nodes_.held_up(number, job, found);
                 },
                 config_.dry_run},
                [this](std::uint32_t job, std::vector<std::string> nodes) {
                    return hub_.newest_step(std::move(nodes), job);
                }},
      followers_(verifier_),
      started_ms_(clock::wall_ms()),
      seen_(started_ms_) {}

result<void> controller::start() {
    BANYAN_TRY(const auto unfinished, records_.open(config_.history, limiter_));
    BANYAN_CHECK(hub_.listen(config_.bind, config_.port));
    metrics_->set_dry_run(config_.dry_run);
    fabric_.start();
    avoidance_.start();
    for (const auto number : unfinished) asio::co_spawn(io_, act(number), asio::detached);
    for (const auto& [number, i] : incidents().all())
        for (const auto& f : i.followed)
            asio::co_spawn(io_, verify_again(verifier_, number, f), asio::detached);
    asio::co_spawn(io_, take_up_held(), asio::detached);
    asio::co_spawn(io_,
                   look_for_absent({io_, pool_, *slurm_, records_, hub_, silence_}, config_.sweep_on_its_way),
                   asio::detached);
    spdlog::info("controller: port {}, {} incidents known, {} unfinished, {} rules of {}{}", config_.port,
                 incidents().all().size(), unfinished.size(), rules_.rules().size(), rules_.source(),
                 config_.dry_run ? "; dry run: Slurm is not touched" : "");
    return {};
}

void controller::finish() { records_.finish(); }

task<result<void>> controller::close(std::uint64_t number, std::string who,
                                     std::optional<std::int64_t> resumed_ms) {
    auto* i = records_.incidents().find(number);
    if (!i)
        co_return fail(errc::not_found, fmt::format("there is no open incident f{:05d}", number),
                       "banyan-fault incidents");
    if (acting_.contains(number))
        co_return fail(errc::conflict, fmt::format("incident {} is being acted on", i->id()), "try again");
    i->state = incident_state::done;
    // Its node returns, whatever the fabric is: that gives nothing up.
    if (!resumed_ms) fabric_.closed_by_hand(*i);
    if (i->closed_ms == 0 || i->closed_by == quiet_job_closes) {
        i->closed_ms = resumed_ms.value_or(clock::wall_ms());
        i->closed_by = who;
    }
    co_await avoidance_.let_go(number, "closed by " + who);
    co_await records_.save(number);
    co_return result<void>{};
}

task<result<std::string>> controller::resume(std::string node, std::string who) {
    const auto asked_ms = clock::wall_ms();  // what is written from now on, nobody has seen yet
    BANYAN_CO_TRY(const auto status,
                  co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); }));
    if (!status.reason.starts_with(our_reason_prefix))
        co_return fail(
            errc::conflict,
            fmt::format("node {} has the reason \"{}\", which is not banyan's", node, status.reason),
            "whoever set it must clear it: scontrol update");
    BANYAN_CO_CHECK(co_await run_blocking(pool_, [this, &node] { return slurm_->resume(node); }));
    limiter_.returned(node);
    std::vector<std::uint64_t> closing;
    for (const auto& [number, i] : incidents().all()) {
        // What is held back still may be the reason already.
        const bool out = i.node_out_ms != 0 || status.reason.contains(fmt::format("[{}]", i.id()));
        if (i.object.node == node && i.closed_ms == 0 && out) closing.push_back(number);
    }
    std::size_t closed = 0, under_way = 0;
    for (const auto number : closing) {
        records_.record(number, resume_verb, node, "by " + who, true);
        // Of one that is acted on the jobs are followed on; what is asked for after that is done to a node
        // that is in service again.
        if (acting_.contains(number)) {
            auto* i = records_.incidents().find(number);
            if (!i || i->closed_ms != 0) continue;
            i->closed_ms = asked_ms;
            i->closed_by = who;
            records_.save_soon(number);
            ++under_way;
        } else if (co_await close(number, who, asked_ms)) {
            ++closed;
        }
    }
    co_return fmt::format(
        "node {} is back in service; {} incidents closed{}", node, closed + under_way,
        under_way > 0 ? fmt::format(", {} of them while their jobs are followed still", under_way) : "");
}

task<void> controller::reload_policy() {
    std::optional<result<policy>> done;  // a task's value must be possible without any
    co_await run_blocking(pool_, [this, &done] {
        done.emplace(load_policy(config_.policy));
        return true;
    });
    auto& read = *done;
    metrics_->set_policy_wrong(!read);
    if (!read) {
        spdlog::error("the policy is not read again, {} stays in force: {}", rules_.source(),
                      read.error().text());
        co_return;
    }
    if (read->digest() == rules_.digest()) {
        spdlog::info("the policy {} is as it was", rules_.source());
        co_return;
    }
    rules_ = std::move(*read);
    spdlog::info("the policy {} was read again: {} rules, digest {}", rules_.source(), rules_.rules().size(),
                 rules_.digest());
    // Of a link that is still down nothing new may be told for long. What a line told of is heard with the
    // next one; a node that was silent is not acted on by that alone: it may answer again.
    std::vector<std::uint64_t> standing;
    for (const auto& [number, i] : incidents().all())
        if (i.closed_ms == 0 && is_ignored(i) && kind_of(i) == line_kind::fabric) standing.push_back(number);
    for (const auto number : standing) hear(number, change::again);
}

void controller::reset_breaker() {
    limiter_.trip(false);
    records_.save_breaker_soon(false);
    records_.incidents().touch();
}

}  // namespace banyan::fault
