// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/job_sessions.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t max_refused = 256;
constexpr milliseconds try_again{500};  // to find memory for a job that was refused
constexpr std::size_t max_announced = 64;

/// A step of another run of the job must not be taken for one of the session's: they count from 0 alike.
result<void> check_restart(const json& meta, const session_request& session) {
    const json_fields in(meta);
    if (!in.has("restart")) return {};
    BANYAN_TRY(const auto restart, in.number("restart", UINT32_MAX));
    if (restart == session.restart) return {};
    return fail(restart > session.restart ? errc::not_found : errc::conflict,
                fmt::format("job {}: the step is of restart {}, and the session on this node of restart {}",
                            session.job, restart, session.restart));
}

// A node has come into the running job: its later steps may have it.
void learn_nodes(session& s, const session_request& request) {
    const auto learn = [&](const auto& node) {
        if (s.addresses.try_emplace(node.name, node.addr).second)
            s.request.spares.push_back({node.name, node.addr});
    };
    for (const auto& n : request.nodes) learn(n);
    for (const auto& n : request.spares) learn(n);
}

// Not that of any other refusal: on_open() tells them apart.
std::unexpected<error> left_meanwhile(std::uint64_t job) {
    return fail(errc::not_found, fmt::format("job {} left this node while its memory was made", job),
                "open its session again, if it runs");
}

}  // namespace

task<answer_meta> job_sessions::on_open(json meta) {
    BANYAN_CO_TRY(auto request, parse_session(meta));
    const auto job = request.job;
    refusal refused{request.uid, {}, request, {}, clock::now()};
    auto answer = co_await open(std::move(request));
    refused_.erase(job);
    // Another request may have opened it meanwhile. And of a job that has left no rank will ask: nothing
    // would ever forget it.
    if (answer || core_.find_session(job) || answer.error().code == errc::not_found ||
        refused_.size() >= max_refused)
        co_return answer;
    refused.why = answer.error();
    if (refused.why.code != errc::exhausted) refused.request.reset();
    refused_.emplace(job, std::move(refused));
    co_return answer;
}

const refusal* job_sessions::refused(std::uint64_t job) const {
    const auto known = refused_.find(job);
    return known == refused_.end() ? nullptr : &known->second;
}

task<session_ptr> job_sessions::open_refused(std::uint64_t job) {
    auto known = refused_.find(job);
    if (known == refused_.end() || !known->second.request || clock::now() < known->second.tried + try_again)
        co_return core_.find_session(job);
    known->second.tried = clock::now();
    auto request = *known->second.request;
    auto answer = co_await open(std::move(request));
    known = refused_.find(job);
    if (!answer || known == refused_.end()) co_return core_.find_session(job);
    auto steps = std::move(known->second.steps);
    refused_.erase(known);
    for (auto& step : steps) {
        auto announced = co_await on_step_open(std::move(step));
        if (!announced) spdlog::warn("job {}: {}", job, announced.error().text());
    }
    spdlog::info("job {}: there is memory for it now", job);
    co_return core_.find_session(job);
}

task<answer_meta> job_sessions::open(session_request request) {
    auto s = core_.find_session(request.job);
    const bool known = s != nullptr;
    if (known && s->request.uid != request.uid)
        co_return fail(
            errc::conflict,
            fmt::format("job {} is open for uid {}, not {}", request.job, s->request.uid, request.uid),
            "close that session first");
    if (known && request.restart < s->request.restart)
        co_return fail(errc::conflict,
                       fmt::format("job {} is at restart {} already", request.job, s->request.restart));
    const bool renewed = known && request.restart > s->request.restart;
    if (!known) {
        s = to_.starts.make_session();
        s->fresh = true;
        core_.sessions[request.job] = s;
        core_.had_session = true;
    }
    core_.heard_of(*s);
    for (const auto& one : with_states(s)) one->detached = one->ending = false;
    if (!known || renewed) {
        auto& earlier = s->agreed->earlier();
        if (renewed) earlier.renew();
        for (const auto& [name, addr] : s->addresses) earlier.add({name, addr});
        for (const auto& n : std::exchange(request.former, {})) earlier.add({n.name, n.addr});
        s->request = std::move(request);
        s->addresses.clear();
        std::vector<std::string> names;
        for (const auto& n : s->request.nodes) {
            s->addresses[n.name] = n.addr;
            names.push_back(n.name);
        }
        for (const auto& n : s->request.spares) s->addresses[n.name] = n.addr;
        // Who has left a run before and has not heard of it yet is told by this one.
        for (const auto& [name, addr] : s->addresses) s->former.forget_departure(name);
        for (const auto& [name, addr] : earlier.nodes())
            if (!s->addresses.contains(name)) s->former.leaves(name, addr);
        s->user = {s->request.uid, s->request.gid, {s->request.gid}};
        s->announced.clear();
        s->announced[make_generation(s->request.restart, std::nullopt)] = {names, {}};
        s->assign({names, {}});
        s->warnings = {};
    } else {
        learn_nodes(*s, request);
    }
    auto here = s->own_ranks();
    ++s->opening;
    const auto ready = co_await to_.memory.make_ready(s, std::move(here));
    --s->opening;
    if (!ready) {
        // A request that came meanwhile, as of a requeue, may have been granted, or waits still.
        const bool left = s->closed || s->detached;
        if (s->fresh && s->opening == 0) core_.free_session(s);
        if (left) co_return left_meanwhile(s->job());
        co_return std::unexpected(ready.error());
    }
    if (s->closed) co_return left_meanwhile(s->job());
    s->fresh = false;
    core_.keep(s);
    core_.spawn(to_.memory.expect_copies(s, ranks_kept_in(s->request, assignment_of(s->request))));
    auto warning = co_await to_.dirs.prepare(s);
    if (s->closed) co_return left_meanwhile(s->job());
    if (!warning.empty()) to_.users.warn(s, s->request.dir, warning);
    spdlog::info("job {}: session {} for uid {}, {} ranks here of {}, restart {}", s->job(),
                 known ? "renewed" : "opened", s->request.uid, s->own_ranks().size(), s->request.world,
                 s->request.restart);
    json out;
    out["state"] = "ready";
    out["warning"] = warning;
    out["generation"] = s->generation;
    co_return out;
}

task<answer_meta> job_sessions::on_step_open(json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", UINT32_MAX - 1));
    const auto s = core_.find_session(job);
    if (const auto known = refused_.find(job); !s && known != refused_.end() && known->second.request) {
        BANYAN_CO_CHECK(check_restart(meta, *known->second.request));
        if (known->second.steps.size() < max_announced) known->second.steps.push_back(meta);
        co_return std::unexpected(known->second.why);
    }
    if (!s) co_return fail(errc::not_found, fmt::format("job {} has no session on this node", job));
    BANYAN_CO_CHECK(check_restart(meta, s->request));
    BANYAN_CO_TRY(const auto names, parse_step_nodes(meta, s->request));
    std::vector<std::uint32_t> buddies;
    if (meta.contains("buddies")) {
        BANYAN_CO_TRY(buddies, json_fields(meta).numbers("buddies", names.size()));
        for (const auto b : buddies)
            if (buddies.size() != names.size() || b >= names.size())
                co_return fail(errc::invalid_input, "\"buddies\" does not fit the slots");
    }
    const auto g = make_generation(s->request.restart, static_cast<std::uint32_t>(step));
    const auto current = first_round(s->generation);
    if (g < current)
        co_return fail(errc::conflict,
                       fmt::format("job {}: step {} is older than the one that runs", job, step));
    assignment wanted{names, buddies};
    const auto known = s->announced.find(g);
    const auto is_same = [&](const auto& nodes) { return nodes == names; };
    if (g == current ? !is_same(assignment_of(s->request).nodes)
                     : known != s->announced.end() && !is_same(known->second.nodes))
        co_return fail(errc::conflict, fmt::format("job {}: step {} is open with other nodes", job, step));
    // It had left the node, and takes it again.
    core_.heard_of(*s);
    for (const auto& one : with_states(s)) one->detached = one->ending = false;
    const auto here = ranks_in(s->request, wanted);
    auto kept = ranks_kept_in(s->request, wanted);
    if (g != current) {
        s->announced[g] = std::move(wanted);
        // Steps that train come one after the other; helpers may be many.
        while (s->announced.size() > max_announced) s->announced.erase(s->announced.begin());
    }
    core_.keep(s);
    BANYAN_CO_CHECK(co_await to_.memory.make_ready(s, here));
    if (s->closed) co_return left_meanwhile(job);
    core_.spawn(to_.memory.expect_copies(s, std::move(kept)));
    s->notify();
    spdlog::info("job {}: step {} may come, {} ranks here", job, step, here.size());
    json out;
    out["state"] = "ready";
    out["warning"] = s->warnings.newest;
    out["generation"] = g;
    co_return out;
}

task<answer_meta> job_sessions::on_detach(json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    refused_.erase(job);
    const auto s = core_.find_session(job);
    if (!s) co_return json::object();
    const auto all = with_states(s);
    // Of a state that no rank of this node has asked for nothing may be here. What has become complete after
    // they had drained may be nowhere else.
    const auto is_over = [](const auto& one) {
        if (one->copies.empty()) return one->all_finished() || !one->state.empty();
        return one->all_finished() && is_stored(*one);
    };
    if (std::all_of(all.begin(), all.end(), is_over)) {
        spdlog::info("job {}: ended, memory freed", job);
        core_.free_session(s);
        co_return json::object();
    }
    const auto lease_end = clock::now() + core_.config.retention;
    for (const auto& one : all) {
        one->detached = true;
        one->lease_end = lease_end;
        core_.keep(one);
    }
    for (const auto& one : all) core_.spawn(to_.ended.leave_in_storage(one));
    co_return json::object();
}

task<answer_meta> job_sessions::on_close(client_ptr client, json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    const auto s = core_.find_session(job);
    // Whether another user's job is here is not told.
    if (!s || (client->uid != 0 && client->uid != ::geteuid() && client->uid != s->request.uid))
        co_return json::object();
    if (json_fields(meta).flag("drain").value_or(false)) {
        BANYAN_CO_CHECK(co_await to_.ended.drain_all(s));
    }
    core_.free_session(s);
    spdlog::info("job {}: session closed", job);
    co_return json::object();
}

}  // namespace banyan::ckpt
