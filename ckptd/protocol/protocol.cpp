// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/protocol/protocol.hpp"

#include <utility>

#include "ckptd/protocol/left_ends.hpp"
#include "ckptd/protocol/session_json.hpp"
#include "common/clock.hpp"
#include "common/job_news.hpp"
#include "common/json_fields.hpp"
#include "common/utf8.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds last_word{200};  // to a daemon that has just come back

result<json> ask(const std::string& socket, message type, const json& meta,
                 std::chrono::milliseconds timeout) {
    const auto until = clock::now() + timeout;
    BANYAN_TRY(const auto fd, wire::connect_unix(socket, until));
    BANYAN_TRY(auto reply, wire::call(fd.get(), static_cast<std::uint16_t>(type), meta, until));
    return std::move(reply.meta);
}

session_answer answer_of(const json& meta) {
    session_answer out;
    const json_fields in(meta);
    out.generation = in.number("generation").value_or(0);
    out.warning = in.text("warning", 64 * 1024).value_or("");
    return out;
}

}  // namespace

std::vector<std::uint32_t> buddies_of_first(const std::vector<std::uint32_t>& all, std::uint32_t slots) {
    if (slots >= all.size()) return all;
    std::vector<std::uint32_t> out(slots), alone;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        auto buddy = all[slot];
        while (buddy >= slots) buddy = all[buddy];
        out[slot] = buddy;
        if (buddy == slot) alone.push_back(slot);
    }
    // Those whose buddies have all gone keep each other's copies; a single one comes between two others.
    if (slots < 2 || alone.empty()) return out;
    if (alone.size() == 1) alone.push_back(alone[0] == 0 ? 1 : 0);
    for (std::size_t i = 0; i + 1 < alone.size(); ++i) std::swap(out[alone[i]], out[alone[i + 1]]);
    return out;
}

nlohmann::json session_to_json(const session_request& r) {
    json nodes = json::array();
    for (const auto& n : r.nodes)
        nodes.push_back({{"name", n.name}, {"addr", n.addr}, {"ranks", n.ranks}, {"buddy", n.buddy}});
    const auto listed = [](const std::vector<session_spare>& of) {
        json out = json::array();
        for (const auto& s : of) out.push_back({{"name", s.name}, {"addr", s.addr}});
        return out;
    };
    json out{{"job", r.job},
             {"restart", r.restart},
             {"uid", r.uid},
             {"gid", r.gid},
             {"self", r.self},
             {"world", r.world},
             {"nodes", nodes},
             {"spares", listed(r.spares)},
             {"former", listed(r.former)},
             {"dir", r.dir},
             {"every", r.every},
             {"flush", r.flush},
             {"milestone", r.milestone},
             {"buffers", r.buffers},
             {"bytes", r.bytes}};
    if (r.slots.empty()) return out;
    auto& slots = out["slots"] = json::array();
    for (const auto& s : r.slots) slots.push_back({{"ranks", s.ranks}, {"buddy", s.buddy}});
    out["min_nodes"] = r.min_nodes;
    out["group"] = r.group;
    return out;
}

std::string socket_path(const std::string& configured, const std::string& node) {
    std::string out = configured;
    for (auto at = out.find("%n"); at != std::string::npos; at = out.find("%n", at + node.size()))
        out.replace(at, 2, node);
    return out;
}

result<session_answer> session_open(const std::string& socket, const session_request& request,
                                    std::chrono::milliseconds timeout) {
    forget_end(socket, request.job);  // of the run before this one
    BANYAN_TRY(const auto meta, ask(socket, message::session_open, session_to_json(request), timeout));
    return answer_of(meta);
}

result<session_answer> step_open(const std::string& socket, const step_request& request,
                                 std::chrono::milliseconds timeout) {
    forget_end(socket, request.job);  // it is taken back without a new session
    json meta{{"job", request.job}, {"step", request.step}, {"nodes", request.nodes}};
    if (request.restart) meta["restart"] = *request.restart;
    if (!request.buddies.empty()) meta["buddies"] = request.buddies;
    BANYAN_TRY(const auto reply, ask(socket, message::step_open, meta, timeout));
    return answer_of(reply);
}

result<void> session_detach(const std::string& socket, std::uint64_t job, std::chrono::milliseconds timeout) {
    const auto tell = [&](const unique_fd& fd, clock::time_point until) -> result<void> {
        BANYAN_CHECK(
            wire::call(fd.get(), static_cast<std::uint16_t>(message::session_detach), {{"job", job}}, until));
        return {};
    };
    const auto until = clock::now() + timeout;
    for (;;) {
        const auto fd = wire::connect_unix(socket, until);
        auto told = fd ? tell(*fd, until) : std::unexpected(fd.error());
        const bool is_away =
            !told && (told.error().code == errc::not_found || told.error().code == errc::unavailable);
        if (!is_away || !is_held(socket)) return told;
        if (clock::now() < until) {
            clock::sleep_for(std::chrono::milliseconds(50));
            continue;
        }
        if (fd) return told;  // it is there, and late
        leave_end(socket, job);
        // It may have come back, and looked, just before that.
        const auto late = wire::connect_unix(socket, until);
        if (!late) return told;
        forget_end(socket, job);
        return tell(*late, clock::now() + last_word);
    }
}

result<void> session_close(const std::string& socket, std::uint64_t job, bool drain,
                           std::chrono::milliseconds timeout) {
    BANYAN_TRY([[maybe_unused]] const auto reply,
               ask(socket, message::session_close, {{"job", job}, {"drain", drain}}, timeout));
    return {};
}

result<std::vector<sealed_job>> seal_now(const std::string& socket, std::uint64_t job,
                                         std::chrono::milliseconds timeout) {
    // The daemon gets a little less than the caller waits, so that its answer arrives in time.
    const auto inner = timeout - timeout / 8;
    const json meta{{"job", job}, {"timeout_ms", static_cast<std::uint64_t>(inner.count())}};
    BANYAN_TRY(const auto reply, ask(socket, message::seal_now, meta, timeout));
    std::vector<sealed_job> out;
    BANYAN_TRY(const auto jobs, json_fields(reply).list("jobs"));
    for (const auto& j : jobs) {
        sealed_job one;
        BANYAN_TRY(one.job, j.number("job"));
        one.step = j.integer("step", 0).value_or(one.step);
        one.replicated = j.flag("replicated").value_or(false);
        out.push_back(one);
    }
    return out;
}

result<void> give_up(const std::string& socket, std::uint64_t job, std::uint32_t step, const std::string& why,
                     std::chrono::milliseconds timeout) {
    // No more is handed on, and the daemon refuses what is far longer.
    const json meta{{"job", job}, {"step", step}, {"why", begin_of(why, job_news::max_text)}};
    BANYAN_TRY([[maybe_unused]] const auto reply, ask(socket, message::given_up, meta, timeout));
    return {};
}

result<std::string> status(const std::string& socket, std::chrono::milliseconds timeout) {
    const auto until = clock::now() + timeout;
    BANYAN_TRY(const auto fd, wire::connect_unix(socket, until));
    json out;
    // From the newest jobs on, a page each. A daemon of another release says all at once.
    for (std::uint64_t before = UINT64_MAX;;) {
        BANYAN_TRY(auto reply, wire::call(fd.get(), static_cast<std::uint16_t>(message::status),
                                          {{"before", before}}, until));
        auto& page = reply.meta;
        const auto more = json_fields(page).number("more", before - 1);
        if (out.is_null()) {
            out = std::move(page);
            out.erase("more");
        } else if (page["sessions"].is_array() && out["sessions"].is_array()) {
            auto& later = out["sessions"];
            page["sessions"].insert(page["sessions"].end(), later.begin(), later.end());
            later = std::move(page["sessions"]);
        }
        if (!more) return out.dump(-1, ' ', false, json::error_handler_t::replace);
        before = *more;
    }
}

}  // namespace banyan::ckpt
