// SPDX-License-Identifier: BSD-3-Clause
//
// Start, end, what is kept, and what an administrator may ask for.
#include "fault/controller/controller.hpp"

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace banyan::fault {

namespace {

constexpr std::size_t remembered = 500;  // incidents read back at start
constexpr const char* breaker_flag = "breaker";

}  // namespace

controller::controller(asio::io_context& io, asio::thread_pool& pool, config settings,
                       std::shared_ptr<metrics> counters, std::unique_ptr<cluster> slurm)
    : io_(io),
      pool_(pool),
      config_(std::move(settings)),
      metrics_(std::move(counters)),
      slurm_(std::move(slurm)),
      engine_(config_.window.count()),
      limiter_(config_.limits()),
      hub_(io, pool, config_, metrics_,
           {.cursor_of = [this](std::string node) { return cursor_of(std::move(node)); },
            .events =
                [this](std::string node, std::vector<event> events) {
                    return take_events(std::move(node), std::move(events));
                },
            .moved =
                [this](std::string node, cursor where) {
                    asio::post(database_, [this, node, where] { (void)history_->set_cursor(node, where); });
                },
            .self_sealed = [this](std::string node, std::int64_t at,
                                  std::string text) { after_self_seal(node, at, text); }}),
      fabric_(io, pool, config_, [this](auto missing, auto lines, auto line_ms) {
          after_fabric(std::move(missing), std::move(lines), line_ms);
      }) {}

result<void> controller::start() {
    std::string warning;
    BANYAN_TRY(auto opened, history::open(config_.history, warning));
    if (!warning.empty()) spdlog::error("{}", warning);
    history_ = std::make_unique<history>(std::move(opened));
    BANYAN_TRY(auto kept, history_->incidents(remembered));
    BANYAN_TRY(const auto taken, history_->taken_since(wall_ms() - 3'600'000));
    BANYAN_TRY(const bool tripped, history_->flag(breaker_flag));
    for (const auto at : taken) limiter_.count(at);
    limiter_.trip(tripped);
    std::vector<std::uint64_t> unfinished;
    for (auto& i : kept) {
        if (i.state != incident_state::done) unfinished.push_back(i.number);
        engine_.restore(std::move(i));
    }
    BANYAN_CHECK(hub_.listen(config_.bind, config_.port));
    fabric_.start();
    for (const auto number : unfinished) asio::co_spawn(io_, act(number), asio::detached);
    spdlog::info("controller: port {}, {} incidents known, {} unfinished{}", config_.port,
                 engine_.all().size(), unfinished.size(),
                 config_.dry_run ? "; dry run: Slurm is not touched" : "");
    return {};
}

void controller::finish() { database_.join(); }

void controller::complain(const error& e) {
    std::uint64_t held = 0;
    if (quiet_.pass(e.what, std::chrono::steady_clock::now(), held))
        spdlog::error("{} ({} more held back)", e.text(), held);
}

task<void> controller::save(std::uint64_t number) {
    engine_.touch();
    const auto* i = engine_.find(number);
    if (!i) co_return;
    const auto copy = *i;
    const bool tripped = limiter_.tripped();
    const auto kept = co_await on_database([this, &copy, tripped] {
        (void)history_->set_flag(breaker_flag, tripped);
        return history_->keep(copy);
    });
    if (!kept) complain(kept.error());
}

task<std::optional<cursor>> controller::cursor_of(std::string node) {
    auto where = co_await on_database([this, &node] { return history_->cursor_of(node); });
    co_return where ? std::move(*where) : std::nullopt;
}

void controller::save_soon(std::uint64_t number) { asio::co_spawn(io_, save(number), asio::detached); }

task<result<std::optional<incident>>> controller::find(std::uint64_t number) {
    if (const auto* i = engine_.find(number)) co_return std::optional(*i);
    co_return co_await on_database([this, number] { return history_->find(number); });
}

task<result<void>> controller::close(std::uint64_t number, std::string who) {
    auto* i = engine_.find(number);
    if (!i)
        co_return fail(errc::not_found, fmt::format("there is no open incident f{:05d}", number),
                       "banyan-fault incidents");
    if (acting_.contains(number))
        co_return fail(errc::conflict, fmt::format("incident {} is being acted on", i->id()), "try again");
    i->state = incident_state::done;
    if (i->closed_ms == 0) {
        i->closed_ms = wall_ms();
        i->closed_by = who;
    }
    co_await save(number);
    co_return result<void>{};
}

task<result<std::string>> controller::resume(std::string node, std::string who) {
    BANYAN_CO_TRY(const auto status,
                  co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); }));
    if (!status.reason.starts_with(our_reason_prefix))
        co_return fail(
            errc::conflict,
            fmt::format("node {} has the reason \"{}\", which is not banyan's", node, status.reason),
            "whoever set it must clear it: scontrol update");
    BANYAN_CO_CHECK(co_await run_blocking(pool_, [this, &node] { return slurm_->resume(node); }));
    std::vector<std::uint64_t> closing;
    for (const auto& [number, i] : engine_.all())
        if (i.object.node == node && i.closed_ms == 0 && i.node_out_ms != 0) closing.push_back(number);
    for (const auto number : closing) {
        record(number, "resume", node, "by " + who, true);
        (void)co_await close(number, who);
    }
    co_return fmt::format("node {} is back in service; {} incidents closed", node, closing.size());
}

task<void> controller::save_breaker() {
    const auto kept =
        co_await on_database([this] { return history_->set_flag(breaker_flag, limiter_.tripped()); });
    if (!kept) complain(kept.error());
}

void controller::reset_breaker() {
    limiter_.trip(false);
    asio::co_spawn(io_, save_breaker(), asio::detached);
    engine_.touch();
}

}  // namespace banyan::fault
