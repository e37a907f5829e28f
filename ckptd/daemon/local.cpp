// SPDX-License-Identifier: BSD-3-Clause
//
// Messages on the Unix socket. Who may send what: see protocol.hpp; the uid is the kernel's word, not the
// peer's.
#include <fmt/format.h>

#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds storage_timeout{3000};  // for a first look at the checkpoint directory
constexpr std::size_t header_allowance = 256 * 1024;
constexpr std::size_t max_refused = 256;
constexpr milliseconds try_again{500};  // to find memory for a job that was refused
constexpr std::size_t max_announced = 64;

bool may_be_root_only(message type) {
    return type == message::session_open || type == message::step_open || type == message::session_detach ||
           type == message::seal_now;
}

}  // namespace

task<daemon::reply> daemon::handle_local(client_ptr client, std::uint16_t type, json meta) {
    const auto what = static_cast<message>(type);
    // A daemon that does not run as root serves its own user alone.
    const bool root = client->uid == 0 || client->uid == ::geteuid();
    if (may_be_root_only(what) && !root)
        co_return fail(errc::denied, fmt::format("uid {} may not send this message", client->uid),
                       "only root may");
    switch (what) {
        case message::session_open:
            co_return co_await on_session_open(std::move(meta));
        case message::step_open:
            co_return co_await on_step_open(std::move(meta));
        case message::session_detach:
            co_return co_await on_detach(std::move(meta));
        case message::session_close:
            co_return co_await on_close(client, std::move(meta));
        case message::attach:
            co_return co_await on_attach(client, std::move(meta));
        case message::sealed:
            on_sealed(client, meta);
            co_return json::object();
        case message::skipped:
            on_skipped(client, meta);
            co_return json::object();
        case message::restore:
            co_return co_await on_restore(client, std::move(meta));
        case message::finalize:
            co_return co_await on_finalize(client, std::move(meta));
        case message::seal_now:
            co_return co_await on_seal_now(std::move(meta));
        case message::status:
            co_return on_status(client->uid, root);
        default:
            co_return fail(errc::invalid_input, fmt::format("unknown message type {}", type));
    }
}

// A user hears of his own jobs; the node's figures are root's, since they tell of other users' jobs.
json daemon::on_status(uid_t uid, bool root) const {
    json sessions = json::array();
    std::uint64_t used = 0;
    for (const auto& [job, s] : sessions_) {
        if (!root && s->request.uid != uid) continue;
        used += s->memory_bytes();
        sessions.push_back(describe(*s));
    }
    json out;
    out["node"] = settings_.node;
    out["pid"] = ::getpid();
    out["memory_limit"] = root ? budget_->limit() : settings_.job_limit();
    out["memory_used"] = root ? budget_->used() : used;
    out["sessions"] = std::move(sessions);
    return out;
}

task<result<void>> daemon::ensure_memory(session_ptr s, std::uint32_t rank, std::uint64_t bytes) {
    const auto held = co_await s->memory_lock->acquire();
    auto& r = s->ranks[rank];
    r.rank = rank;
    const std::uint64_t buffer_bytes = round_to_page(bytes);
    if (r.memory && r.buffers == s->request.buffers && r.buffer_bytes >= buffer_bytes)
        co_return result<void>{};
    const std::uint32_t buffers = s->request.buffers;
    const auto name = fmt::format("banyan-buffers-{}-{}", s->job(), rank);
    const auto wanted = rank_memory_bytes(buffers, buffer_bytes), used = s->memory_bytes();
    const auto limit = settings_.job_limit();
    if (wanted > limit || used > limit - wanted)
        co_return fail(errc::exhausted,
                       fmt::format("rank {} needs {}, but job {} has {} of its {} on this node", rank,
                                   format_bytes(wanted), s->job(), format_bytes(used), format_bytes(limit)),
                       "use fewer buffers, or have job_memory_limit in [ckptd] of banyan.conf raised");
    auto budget = budget_;
    const auto work = [budget, name, buffers, buffer_bytes] {
        return shard_memory::make(budget, name, rank_memory_bytes(buffers, buffer_bytes));
    };
    auto made = co_await compute_.run(s->request.uid, work);
    while (!made && made.error().code == errc::exhausted) {
        const bool there_is_room = co_await wait_for_ended();
        if (!there_is_room) break;
        made = co_await compute_.run(s->request.uid, work);
    }
    BANYAN_CO_TRY(auto memory, std::move(made));
    auto& header = *new (memory->data()) rank_memory_header{};
    header.magic = rank_memory_magic;
    header.buffers = buffers;
    header.rank = rank;
    header.buffer_bytes = buffer_bytes;
    header.job = s->job();
    // Copies in the old memory live on until a newer step is complete; nobody writes there any more.
    for (const auto& c : s->copies)
        if (c->rank == rank && c->memory == s->ranks[rank].memory) c->buffer = -1;
    auto& target = s->ranks[rank];
    const auto before = std::exchange(target.memory, std::move(memory));
    target.buffers = buffers;
    target.buffer_bytes = buffer_bytes;
    keep(s);  // and only then may the one before go
    co_return result<void>{};
}

task<result<void>> daemon::make_ready(session_ptr s, std::vector<std::uint32_t> ranks) {
    if (s->request.bytes == 0) co_return result<void>{};
    for (const auto rank : ranks)
        BANYAN_CO_CHECK(co_await ensure_memory(s, rank, s->request.bytes + header_allowance));
    co_return result<void>{};
}

task<std::string> daemon::check_directory(session_ptr s) {
    if (s->request.dir.empty()) co_return std::string();
    auto answer = std::make_shared<std::optional<result<void>>>();
    // The answer may come late or never: a worker of the storage pool waits for it, not this session.
    asio::co_spawn(
        io_,
        [](daemon* self, session_ptr who, std::shared_ptr<std::optional<result<void>>> out) -> task<void> {
            const auto uid = who->request.uid;
            const auto gid = who->request.gid;
            const auto dir = who->request.dir;
            // A directory service may be as slow as storage.
            const auto find = [uid, gid]() -> result<storage_user> { return find_user(uid, gid); };
            auto found = co_await self->storage_.run(uid, find);
            if (found) who->user = std::move(*found);
            const auto user = who->user;
            const auto prepare = [user, dir] { return prepare_directory(user, dir); };
            *out = co_await self->storage_.run(uid, prepare);
            who->changed->notify();
        }(this, s, answer),
        [](std::exception_ptr) {});
    const auto until = clock::now() + storage_timeout;
    while (!answer->has_value() && clock::now() < until) co_await s->changed->wait(until);
    if (!answer->has_value())
        co_return fmt::format(
            "the checkpoint directory {} does not answer: state is kept in memory only for now",
            s->request.dir);
    if (**answer) co_return std::string();
    co_return fmt::format("{}: state is kept in memory only for now", (*answer)->error().text());
}

task<daemon::reply> daemon::on_session_open(json meta) {
    BANYAN_CO_TRY(auto request, parse_session(meta));
    const auto job = request.job;
    refusal refused{request.uid, {}, request, {}, clock::now()};
    auto answer = co_await open_session(std::move(request));
    refused_.erase(job);
    if (answer || refused_.size() >= max_refused) co_return answer;
    refused.why = answer.error();
    if (refused.why.code != errc::exhausted) refused.request.reset();
    refused_.emplace(job, std::move(refused));
    co_return answer;
}

task<session_ptr> daemon::open_refused(std::uint64_t job) {
    auto known = refused_.find(job);
    if (known == refused_.end() || !known->second.request || clock::now() < known->second.tried + try_again)
        co_return find_session(job);
    known->second.tried = clock::now();
    auto request = *known->second.request;
    auto answer = co_await open_session(std::move(request));
    known = refused_.find(job);
    if (!answer || known == refused_.end()) co_return find_session(job);
    auto steps = std::move(known->second.steps);
    refused_.erase(known);
    for (auto& step : steps) {
        auto announced = co_await on_step_open(std::move(step));
        if (!announced) spdlog::warn("job {}: {}", job, announced.error().text());
    }
    spdlog::info("job {}: there is memory for it now", job);
    co_return find_session(job);
}

session_ptr daemon::make_session() {
    auto s = std::make_shared<session>();
    s->changed = std::make_shared<async_event>(io_.get_executor());
    s->memory_lock = std::make_shared<async_lock>(io_.get_executor());
    s->launch_lock = std::make_shared<async_lock>(io_.get_executor());
    s->bring_lock = std::make_shared<async_lock>(io_.get_executor());
    s->agreed = make_agreement(s);
    return s;
}

task<daemon::reply> daemon::open_session(session_request request) {
    auto s = find_session(request.job);
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
        s = make_session();
        sessions_[request.job] = s;
        had_session_ = true;
    }
    s->detached = s->ending = false;
    if (!known || renewed) {
        s->request = std::move(request);
        s->addresses.clear();
        std::vector<std::string> names;
        for (const auto& n : s->request.nodes) {
            s->addresses[n.name] = n.addr;
            names.push_back(n.name);
        }
        for (const auto& n : s->request.spares) s->addresses[n.name] = n.addr;
        s->user = {s->request.uid, s->request.gid, {s->request.gid}};
        s->announced.clear();
        s->announced[make_generation(s->request.restart, std::nullopt)] = {names, {}};
        s->assign({names, {}});
        s->warnings = {};
    }
    auto here = s->own_ranks();
    if (auto ready = co_await make_ready(s, std::move(here)); !ready) {
        if (!known) free_session(s);
        co_return std::unexpected(ready.error());
    }
    keep(s);
    auto warning = co_await check_directory(s);
    if (!warning.empty()) warn(s, s->request.dir, warning);
    spdlog::info("job {}: session {} for uid {}, {} ranks here of {}, restart {}", s->job(),
                 known ? "renewed" : "opened", s->request.uid, s->own_ranks().size(), s->request.world,
                 s->request.restart);
    json out;
    out["state"] = "ready";
    out["warning"] = warning;
    out["generation"] = s->generation;
    co_return out;
}

task<daemon::reply> daemon::on_step_open(json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    BANYAN_CO_TRY(const auto step, json_fields(meta).number("step", UINT32_MAX - 1));
    const auto s = find_session(job);
    if (const auto known = refused_.find(job); !s && known != refused_.end() && known->second.request) {
        if (known->second.steps.size() < max_announced) known->second.steps.push_back(meta);
        co_return std::unexpected(known->second.why);
    }
    if (!s) co_return fail(errc::not_found, fmt::format("job {} has no session on this node", job));
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
    std::vector<std::string> in_force;
    for (const auto& n : s->request.nodes) in_force.push_back(n.name);
    if (g == current ? !is_same(in_force) : known != s->announced.end() && !is_same(known->second.nodes))
        co_return fail(errc::conflict, fmt::format("job {}: step {} is open with other nodes", job, step));
    const auto here = s->ranks_in(wanted);
    if (g != current) {
        s->announced[g] = std::move(wanted);
        // Steps that train come one after the other; helpers may be many.
        while (s->announced.size() > max_announced) s->announced.erase(s->announced.begin());
        keep(s);
    }
    BANYAN_CO_CHECK(co_await make_ready(s, here));
    notify(s);
    spdlog::info("job {}: step {} may come, {} ranks here", job, step, here.size());
    json out;
    out["state"] = "ready";
    out["warning"] = s->warnings.newest;
    out["generation"] = g;
    co_return out;
}

task<daemon::reply> daemon::on_seal_now(json meta) {
    BANYAN_CO_TRY(const auto job, json_fields(meta).number("job"));
    const auto timeout_ms = json_fields(meta).number("timeout_ms", 600'000).value_or(1000);
    const auto until = clock::now() + milliseconds(timeout_ms);
    // What every rank has sealed commits within milliseconds; what one rank never seals is not waited for
    // long.
    const auto straggler = std::min(until, clock::now() + milliseconds(250));
    json jobs = json::array();
    const auto before = sessions_;
    for (const auto& [id, s] : before) {
        if (job != 0 && id != job) continue;
        for (const auto& [rank, r] : s->ranks)
            if (r.memory && r.owner != 0 && r.generation == s->generation) scan_buffers(s, rank);
        const auto newest = [&s = s] {
            copy_key key;
            for (const auto& c : s->copies)
                if (c->buffer >= 0 && c->key.generation == s->generation) key = std::max(key, c->key);
            return key;
        };
        while (!s->closed && clock::now() < until) {
            const bool reached = s->committed && newest() <= *s->committed;
            if (s->pending == 0 && (reached || newest() == copy_key{} || clock::now() >= straggler)) break;
            co_await s->changed->wait(std::min(until, clock::now() + milliseconds(20)));
        }
        json one;
        one["job"] = id;
        if (s->committed) one["step"] = s->committed->step;
        one["replicated"] = s->committed && s->committed_replicated;
        jobs.push_back(std::move(one));
    }
    if (job != 0 && jobs.empty())
        co_return fail(errc::not_found, fmt::format("job {} has no session on this node", job));
    json out;
    out["jobs"] = std::move(jobs);
    co_return out;
}

}  // namespace banyan::ckpt
