// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/hub.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {
// Each life of a controller has numbers of its own: an agent may still work on what an earlier one asked for,
// and answers over the next connection.
constexpr std::chrono::milliseconds look_for_agent(100);  // whether it is back
constexpr unsigned requests_a_ms = 10;
constexpr std::size_t longest_finding = 1'000;
constexpr std::chrono::seconds life(3);  // a host that is gone without a word is asked for soon
}  // namespace

std::string seal_report::text() const {
    std::vector<std::string> parts;
    for (const auto& [job, step] : steps)
        parts.push_back(step < 0 ? fmt::format("job {}: no complete step", job)
                                 : fmt::format("job {} step {}", job, step));
    auto out = fmt::format("{}/{} nodes answered", answered, asked);
    if (!parts.empty())
        out += fmt::format("; {}{}", fmt::join(parts, ", "), replicated ? ", replicated" : "");
    if (!silent.empty()) out += "; silent: " + compress_hostlist(silent);
    return out;
}

hub::hub(asio::io_context& io, asio::thread_pool& pool, const config& settings,
         std::shared_ptr<metrics> counters, callbacks calls)
    : io_(io),
      metrics_(std::move(counters)),
      calls_(std::move(calls)),
      listener_(
          io.get_executor(),
          peer::settings::of(peer_role, settings.node, settings.munge_socket, settings.encrypt, munge_, pool),
          {.waiting = 4096, .proven = 20'000},
          [this](auto connection) { return serve(std::move(connection)); }),
      sweep_timeout_(settings.sweep_timeout + settings.sweep_on_its_way),
      agent_within_(settings.sweep_on_its_way),
      next_request_(static_cast<std::uint64_t>(clock::wall_ms()) << requests_a_ms) {}

result<void> hub::listen(const std::string& address, std::uint16_t port) {
    return listener_.open(address, port);
}

task<result<void>> hub::welcome(std::shared_ptr<channel> link, std::string node) {
    BANYAN_CO_TRY(const auto hello, co_await link->peer().read_frame());
    if (hello.type != code(message::hello))
        co_return fail(errc::invalid_input, "an agent must say hello first");
    BANYAN_CO_TRY(const auto claimed, json_fields(hello.meta).text("node", 256));
    if (claimed != node)
        co_return fail(errc::denied, fmt::format("the agent of {} speaks for {}", node, claimed));
    BANYAN_CO_TRY(auto boot, json_fields(hello.meta).text("boot", 256));
    BANYAN_CO_TRY(const auto gpus, json_fields(hello.meta).number("gpus", 1024));
    json meta = json::object();
    if (const auto where = calls_.cursor_of(node)) {
        meta["cursor"] = {{"boot", where->boot_id},
                          {"stream", where->stream},
                          {"inode", where->inode},
                          {"position", where->position}};
    }
    for (auto& [card, ports] : calls_.lost_ports(node))
        meta["ports_down"].push_back({{"card", std::move(card)}, {"ports", std::move(ports)}});
    link->send(message::welcome, std::move(meta));
    auto& info = agents_[node];
    info.boot_id = std::move(boot);
    info.gpus = gpus;
    info.since_ms = info.heard_ms = clock::wall_ms();
    info.connected = true;
    info.clock = {};
    co_return result<void>{};
}

task<void> hub::serve(std::shared_ptr<peer::channel> connection) {
    const auto node = connection->node(), from = connection->address();
    auto link = std::make_shared<channel>(std::move(connection));
    link->start();
    if (const auto ok = co_await welcome(link, node); ok) {
        if (auto& old = links_[node]; old) old->close();  // the agent was restarted
        links_[node] = link;
        agents_[node].address = from;
        link->peer().expect_life_within(life);
        calls_.heard(node, true);
        metrics_->set_agents(links_.size());
        spdlog::info("agent of {} connected from {}", node, from);
        for (;;) {
            auto frame = co_await link->peer().read_frame();
            if (!frame) break;
            co_await take_frame(link, node, std::move(*frame));
        }
        unacknowledged_.erase(link);
        // A newer connection of the agent may have come and gone meanwhile: then there is none.
        if (const auto it = links_.find(node); it != links_.end() && it->second == link) {
            links_.erase(it);
            agents_[node].connected = false;
            spdlog::info("agent of {} is gone", node);
            calls_.heard(node, false);
        }
        metrics_->set_agents(links_.size());
    }
    link->close();
}

task<void> hub::take_frame(std::shared_ptr<channel> link, std::string node, wire::frame frame) {
    auto& info = agents_[node];
    info.heard_ms = clock::wall_ms();
    const auto& meta = frame.meta;
    const json_fields in(meta);
    if (const auto sent = in.number("now_ms", latest_ms))
        info.clock.heard(static_cast<std::int64_t>(*sent), info.heard_ms);
    if (frame.type == code(message::events)) {
        const auto batch = in.number("batch");
        const auto list = in.list("events", max_batch);
        if (!batch || !list || !unacknowledged_.insert(link).second) {
            spdlog::error("the agent of {} broke the protocol", node);
            link->close();
            co_return;
        }
        std::vector<event> events;
        for (const auto& item : *in.find("events")) {
            auto e = event_from(item);
            if (!e || e->node != node) continue;  // an agent speaks of its own node only
            e->written_ms = info.clock.ours(e->line_ms);
            events.push_back(std::move(*e));
        }
        info.events += events.size();
        // What it says meanwhile is heard: the history may take its time.
        const std::function<void()> kept = [this, link, number = *batch] {
            json reply = {{"batch", number}};
            if (unacknowledged_.erase(link) != 0) link->send(message::ack, std::move(reply));
        };
        co_await calls_.events(node, std::move(events), kept);
    } else if (frame.type == code(message::sealed)) {
        take_sealed(node, meta);
    } else if (frame.type == code(message::swept)) {
        take_swept(node, meta);
    } else if (frame.type == code(message::self_sealed)) {
        const auto at = in.number("at_ms", INT64_MAX);
        const auto text = in.text("text");
        if (at && text) calls_.self_sealed(node, static_cast<std::int64_t>(*at), *text);
    } else if (frame.type == code(message::heartbeat)) {
        if (auto domain = nvlink_domain_in(in); domain && in.has("nvlink_domain"))
            info.nvlink_domain = std::move(*domain);
        info.queued = in.number("queued").value_or(0);
        info.dropped = in.number("dropped").value_or(0);
        info.lost = in.number("lost").value_or(0);
        const auto at = in.object("cursor");
        if (!at) co_return;
        const auto boot = at->text("boot", 256), stream = at->text("stream", 256);
        const auto inode = at->number("inode"), position = at->number("position");
        if (boot && stream && inode && position)
            calls_.moved(node, cursor{*boot, *stream, *inode, *position});
    }
}

void hub::take_sealed(const std::string& node, const json& meta) {
    const json_fields in(meta);
    const auto request = in.number("request");
    const auto it = request ? sealings_.find(*request) : sealings_.end();
    if (it == sealings_.end() || it->second.waiting.erase(node) == 0) return;
    auto& report = it->second.report;
    const auto why = in.text("error");
    if (why && why->empty())
        ++report.answered;
    else
        report.silent.push_back(node);
    if (const auto jobs = in.list("jobs"))
        for (const auto& one : *jobs) {
            const auto job = one.number("job");
            const auto step = one.integer("step");
            if (!job || !step) continue;
            // Each answer is about all ranks, as far as that daemon has heard: the newest is the truth. A
            // spare has heard nothing.
            const auto [kept, fresh] = report.steps.try_emplace(*job, *step);
            if (!fresh) kept->second = std::max(kept->second, *step);
            if (*step < 0) continue;
            report.replicated &= one.flag("replicated").value_or(false);
        }
    if (it->second.waiting.empty()) it->second.done->cancel();
}

task<seal_report> hub::seal(std::vector<std::string> nodes, std::uint64_t job,
                            std::chrono::milliseconds timeout) {
    const auto request = next_request_++;
    auto timer = std::make_shared<banyan::timer>(io_, timeout);
    {
        auto& s = sealings_[request];
        s.done = timer;
        s.report.asked = nodes.size();
        json meta = {{"request", request}, {"job", job}, {"timeout_ms", timeout.count()}};
        for (const auto& node : nodes) {
            const auto it = links_.find(node);
            if (it != links_.end() && it->second->send(message::seal, meta))
                s.waiting.insert(node);
            else
                s.report.silent.push_back(node);
        }
    }
    if (!sealings_[request].waiting.empty()) co_await timer->async_wait(as_result);
    auto s = std::move(sealings_[request]);
    sealings_.erase(request);
    s.report.silent.insert(s.report.silent.end(), s.waiting.begin(), s.waiting.end());
    std::ranges::sort(s.report.silent);
    co_return std::move(s.report);
}

task<std::optional<std::int64_t>> hub::newest_step(std::vector<std::string> nodes, std::uint32_t job) {
    constexpr std::chrono::seconds within(1);
    const auto report = co_await seal(std::move(nodes), job, within);
    const auto found = report.steps.find(job);
    if (found == report.steps.end()) co_return std::nullopt;
    co_return found->second;
}

void hub::take_swept(const std::string& node, const json& meta) {
    const json_fields in(meta);
    const auto request = in.number("request");
    const auto it = request ? sweepings_.find(*request) : sweepings_.end();
    // The first answer counts.
    if (it == sweepings_.end() || it->second.node != node || it->second.report) return;
    const auto verdict = in.text("verdict", 32), text = in.text("text", longest_finding);
    it->second.report = verdict && text ? sweep_report{*verdict, printable(*text)}
                                        : sweep_report{.text = "its agent's answer makes no sense"};
    it->second.done->cancel();
}

void hub::give_up_sweep(std::uint64_t number) {
    for (auto& [request, s] : sweepings_) {
        if (s.number != number || s.report) continue;
        s.given_up = true;
        s.done->cancel();
    }
}

bool hub::ask_for_sweep(const std::string& node, std::uint64_t request) {
    const auto it = links_.find(node);
    json meta = {{"request", request}};
    return it != links_.end() && it->second->send(message::sweep, std::move(meta));
}

task<std::optional<sweep_report>> hub::sweep(std::string node, std::uint64_t number) {
    const auto request = next_request_++;
    auto timer = std::make_shared<banyan::timer>(io_);
    sweepings_[request] = {node, number, false, std::nullopt, timer};
    // A controller that has just begun goes on with its incidents while the agents come back to it.
    const auto until = clock::now() + agent_within_;
    bool asked = ask_for_sweep(node, request);
    while (!asked && !sweepings_[request].given_up && clock::now() < until) {
        timer->expires_after(look_for_agent);
        co_await timer->async_wait(as_result);
        asked = !sweepings_[request].given_up && ask_for_sweep(node, request);
    }
    if (asked) {
        timer->expires_after(sweep_timeout_);
        co_await timer->async_wait(as_result);
    }
    auto s = std::move(sweepings_[request]);
    sweepings_.erase(request);
    if (!s.report && !s.given_up)
        s.report =
            sweep_report{.text = asked ? "its agent did not answer in time" : "its agent is not connected"};
    co_return std::move(s.report);
}

std::string hub::nvlink_domain_of(const std::string& node) const {
    const auto it = agents_.find(node);
    return it == agents_.end() ? std::string() : it->second.nvlink_domain.value_or("");
}

std::string hub::boot_of(const std::string& node) const {
    const auto it = agents_.find(node);
    return it == agents_.end() ? std::string() : it->second.boot_id;
}

}  // namespace banyan::fault
