// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/reporter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds warning_timeout{2000};

}  // namespace

void reporter::warn(const session_ptr& s, const std::string& about, const std::string& whole) {
    auto& w = s->warnings;
    const auto text = whole.substr(0, user_warnings::longest);
    if (text != w.newest) ++w.count;
    w.newest = text;
    std::uint64_t held_back = 0;
    // By what it is about: a text may hold what a user has chosen, anew each time.
    if (w.lines.pass(about, clock::now(), held_back))
        spdlog::warn("{}: {} ({} more since)", in_words(*s), text, held_back);
    if (!w.reported.insert(about).second) return;
    // Before the first step the other nodes may not have the session yet.
    if (has_step(s->generation))
        core_.spawn(report(s, about, text));
    else
        s->tell_user(about, text);
}

task<void> reporter::report(session_ptr s, std::string about, std::string text) {
    json meta = header_of(*s);
    meta["about"] = about;
    meta["text"] = text;
    const auto answer =
        co_await peers_.ask_leader(s, peer_message::warning, std::move(meta), warning_timeout);
    if (!answer || !*answer) s->tell_user(about, text);
}

// A user can cause all of these as often as he likes: memory and files are his own.
void reporter::tell_of_damage(const session_ptr& s, std::uint32_t rank, job_news::kind what,
                              std::string text) {
    std::uint64_t held_back = 0;
    if (!s->warnings.news.pass(fmt::format("damaged {}", static_cast<int>(what)), clock::now(), held_back))
        return;
    spdlog::error("job {}: rank {}: {} ({} more since)", s->job(), rank, text, held_back);
    job_news news;
    news.what = what;
    news.job = static_cast<std::uint32_t>(s->job());
    news.rank = rank;
    news.more = std::min<std::uint64_t>(held_back, UINT32_MAX);
    news.text = std::move(text);
    // Without an agent the log and the figures have it.
    if (const auto told = tell_agent(core_.config.agent_socket, news); !told)
        spdlog::debug("{}", told.error().text());
}

void reporter::note_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key) {
    ++s->bytes.damaged_here;
    tell_of_damage(
        s, rank, job_news::kind::copy_damaged,
        fmt::format("the copy of step {} in this node's memory is damaged and will not be used", key.step));
}

void reporter::note_sent_damage(const session_ptr& s, std::uint32_t rank, const copy_key& key,
                                const std::string& to) {
    tell_of_damage(s, rank, job_news::kind::sent_damaged,
                   fmt::format("the copy of step {} was damaged when it left for {}", key.step, to));
}

void reporter::note_stored_damage(const session_ptr& s, std::uint32_t rank, const std::string& what) {
    ++s->bytes.damaged_in_storage;
    tell_of_damage(s, rank, job_news::kind::stored_damaged, what);
}

void reporter::report_untold(const session_ptr& s) {
    for (const auto& [about, text] : std::exchange(s->warnings.untold, {})) {
        s->warnings.told.erase(about);
        core_.spawn(report(s, about, text));
    }
}

answer_meta reporter::on_warning(const session_ptr& s, const json& meta) {
    BANYAN_TRY(const auto about, json_fields(meta).text("about"));
    BANYAN_TRY(const auto text, json_fields(meta).text("text"));
    s->tell_user(about, text);
    return json::object();
}

answer_meta reporter::on_given_up(uid_t uid, bool root, const json& meta) {
    const json_fields in(meta);
    BANYAN_TRY(const auto job, in.number("job", UINT32_MAX));
    BANYAN_TRY(const auto step, in.number("step", UINT32_MAX));
    BANYAN_TRY(const auto why, in.text("why"));
    const auto s = core_.find_session(job);
    // Nobody learns whether another user has a job of that number.
    if (!s || (!root && s->request.uid != uid))
        return fail(errc::not_found, fmt::format("job {} of uid {} has no session here", job, uid));
    std::uint64_t held_back = 0;
    if (!s->warnings.news.pass("given up", clock::now(), held_back))
        return fail(errc::exhausted, fmt::format("job {} was said to be given up a moment ago", job));
    spdlog::warn("job {}: given up: {}", job, printable(why.substr(0, job_news::max_text)));
    job_news news;
    news.what = job_news::kind::given_up;
    news.job = static_cast<std::uint32_t>(job);
    news.step = static_cast<std::uint32_t>(step);
    news.text = why;
    BANYAN_CHECK(tell_agent(core_.config.agent_socket, news));
    return json::object();
}

// A daemon that never came up says nothing: its node is known by what the others miss.
void reporter::watch_votes(const session_ptr& s) {
    if (s->detached || !s->slot || !s->agreed->rules().has_begun() ||
        s->agreed->leader() != s->agreed->rules().slot())
        return;
    const auto& votes = s->agreed->rules().votes();
    const auto open = votes.open();
    const auto oldest = open.empty() ? std::nullopt : std::optional(open.front());
    if (s->incomplete.step != oldest) {
        s->incomplete.step = oldest;
        s->incomplete.since = clock::now();
    }
    if (!oldest || s->warnings.reported.contains(user_warnings::votes)) return;
    if (clock::now() < s->incomplete.since + core_.config.commit_warning_after) return;
    const auto key = *oldest;
    const auto ranks = votes.missing(key);
    std::vector<bool> lacking(s->request.world);
    for (const auto rank : ranks) lacking[rank] = true;
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < s->request.nodes.size(); ++i) {
        if (i == 0 && *s->slot != 0) continue;  // rank 0 says itself that it has no daemon
        const auto& own = s->request.nodes[i].ranks;
        if (std::any_of(own.begin(), own.end(), [&](auto rank) { return lacking[rank]; }))
            nodes.push_back(s->request.nodes[i].name);
    }
    if (nodes.empty()) return;
    const auto timeout = std::chrono::duration<double>(core_.config.commit_warning_after).count();
    warn(s, user_warnings::votes,
         fmt::format("step {} is not complete after {} s: nothing from {}; look there into slurmd's log and "
                     "banyan-ckpt status",
                     key.step, timeout, compress_hostlist(nodes)));
}

}  // namespace banyan::ckpt
