// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/former_nodes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ckptd/daemon/encoding.hpp"
#include "ckptd/net/peer.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds inquiry_timeout{1000};
constexpr milliseconds awaited_again{1000};
constexpr milliseconds inquiry_in_all{3000};  // a job that was started again waits no longer for who is gone
/// Where what they hold is not needed: they are only to end what they have begun.
constexpr milliseconds farewell_in_all{200};
constexpr std::size_t asked_at_once = 256;
constexpr milliseconds look_again_at{250};  // whether all members have said what they hold
constexpr auto about_former = "former nodes";

// A refusal is one: there is nothing for us there. Not that something went wrong on the way to one.
bool is_answer(const error& e) {
    return e.code == errc::not_found || e.code == errc::denied || e.code == errc::conflict;
}

}  // namespace

struct former_nodes::inquiry {
    std::vector<session_node> nodes;
    std::vector<bool> over;
    std::size_t next = 0, ended = 0;
    clock::time_point until;
    std::uint64_t generation = 0;
    std::vector<agreement::node_address> all;  ///< also who has answered before
};

json former_nodes::tell(const session_ptr& job, const session_ptr& s, std::uint64_t generation) {
    if (generation > last_round(job->generation))
        spdlog::info("job {}: launch {:x} asks what is held here: {:x} is over", job->job(), generation,
                     job->generation);
    for (const auto& one : with_states(job)) one->agreed->end_launch(generation);
    agreement::inventory what;
    if (s) {
        const auto& rules = s->agreed->rules();
        what.copies = rules.copies().checked();
        what.replicated = rules.committed(agreement::level::replicated);
        what.begun = rules.copies().begun();
    }
    auto out = agreement::encode({s ? s->generation : job->generation, std::move(what)}, {});
    if (s != job || job->states.empty()) return out;
    auto& names = out["states"] = json::array();
    for (const auto& [name, state] : job->states) names.push_back(name);
    return out;
}

// Of the same launch's nodes each says the same: more than a job may have are no daemon's of ours.
std::set<std::string> former_nodes::states_in(const json& said) {
    std::set<std::string> out;
    if (!said.contains("states")) return out;
    const auto names = json_fields(said).texts("states", max_states, max_state_name);
    if (!names) return out;
    for (const auto& name : *names)
        if (is_state_name(name)) out.insert(name);
    return out;
}

void former_nodes::take_states(session& job, const json& said) {
    if (!job.state.empty()) return;
    for (const auto& name : states_in(said))
        if (job.former.states.size() < max_states) job.former.states.insert(name);
}

task<result<std::set<std::string>>> former_nodes::ask_of_all_states(session_ptr job, session_node node) {
    std::set<std::string> out;
    const auto to = peers_.new_link(node);
    const agreement::limits most{0, most_ranks(job->request), max_step};
    std::set<std::string> names{""};
    for (bool first = true; !names.empty(); first = false) {
        const auto name = *names.begin();
        names.erase(names.begin());
        json meta = header_of(*job);
        meta["uid"] = job->request.uid;
        if (!name.empty()) meta["state"] = name;
        const auto said = co_await to->call(peer_message::holdings, std::move(meta), inquiry_timeout);
        // conflict: it is of a launch as new as this one, and what it holds is for that one to say.
        if (!said && (!is_answer(said.error()) || said.error().code == errc::conflict)) {
            to->close();
            co_return std::unexpected(said.error());
        }
        if (!said) continue;
        auto read = agreement::decode(*said, most);
        const auto* has = read ? std::get_if<agreement::inventory>(&read->what) : nullptr;
        // More ranks than there may be, or another build's words: it has something.
        if (!has || !has->copies.empty()) out.insert(name);
        if (first) names = states_in(*said);
    }
    to->close();
    co_return out;
}

task<void> former_nodes::ask_one(session_ptr s, std::shared_ptr<inquiry> of, std::size_t i) {
    const auto to = peers_.new_link(of->nodes[i]);
    json meta = header_of(*s);
    meta["uid"] = s->request.uid;
    const auto said = co_await to->call(peer_message::holdings, std::move(meta), inquiry_timeout);
    to->close();
    of->over[i] = true;
    s->notify();
    if (!said && !is_answer(said.error())) co_return;
    if (s->agreed->rules().generation() != of->generation) co_return;
    auto& answer = s->former.heard[of->nodes[i].name];
    answer = {};
    if (!said) co_return;
    take_states(*s, *said);
    const agreement::limits most{0, most_ranks(s->request), max_step};
    auto read = agreement::decode(*said, most);
    if (auto* has = read ? std::get_if<agreement::inventory>(&read->what) : nullptr) answer = std::move(*has);
}

// One after the other. To connect may take longer than anybody here waits: its place goes to the next.
task<void> former_nodes::ask_some(session_ptr s, std::shared_ptr<inquiry> of) {
    while (of->next < of->nodes.size() && clock::now() < of->until && !s->closed) {
        const auto i = of->next++;
        core_.spawn(ask_one(s, of, i));
        const auto until = std::min(of->until, clock::now() + inquiry_timeout);
        while (!of->over[i] && clock::now() < until && !s->closed) co_await s->changed->wait(until);
        ++of->ended;
        s->notify();
    }
}

// Whoever has answered in this launch is not asked again for one that is awaited.
void former_nodes::take_nodes(const session& s, bool for_awaited, inquiry& of) {
    const auto& rules = s.agreed->rules();
    std::vector<agreement::node_address> members, known;
    for (const auto& n : s.request.nodes) members.push_back({n.name, n.addr});
    for (const auto& [name, addr] : s.addresses) known.push_back({name, addr});
    for (auto& n : rules.earlier().list()) known.push_back(std::move(n));
    for (auto& n : rules.coordinating()->former()) known.push_back(std::move(n));
    for (auto& n : agreement::whom_to_ask(members, known)) {
        of.all.push_back(n);
        if (!for_awaited || !s.former.heard.contains(n.name)) of.nodes.push_back({n.name, n.addr, {}, 0});
    }
}

task<std::optional<agreement::word_outside>> former_nodes::ask(session_ptr s, std::uint64_t look) {
    const auto wanted = [&] { return !s->closed && s->storage.look == look; };
    const auto* rules = &s->agreed->rules();
    const auto heard = [&] { return !rules->coordinating() || rules->coordinating()->waits_for().empty(); };
    while (wanted() && !heard()) co_await s->changed->wait(clock::now() + look_again_at);
    const auto over = [&] { return !wanted() || !rules->coordinating() || rules->has_begun(); };
    const bool awaited = !over() && rules->coordinating()->awaited().has_value();
    for (const auto at = s->former.asked + awaited_again; awaited && !over() && clock::now() < at;)
        co_await s->changed->wait(at);
    if (over()) co_return std::nullopt;
    for (const auto& n : rules->coordinating()->former()) s->agreed->earlier().add(n);
    const bool needed = rules->needs_outside();
    const auto of = std::make_shared<inquiry>();
    if (!awaited) s->former.heard.clear();
    take_nodes(*s, awaited, *of);
    of->generation = rules->generation();
    of->over.resize(of->nodes.size());
    s->former.asked = clock::now();
    of->until = clock::now() + (needed ? inquiry_in_all : farewell_in_all);
    for (std::size_t i = 0; i < std::min(asked_at_once, of->nodes.size()); ++i) core_.spawn(ask_some(s, of));
    while (wanted() && of->ended < of->nodes.size() && clock::now() < of->until)
        co_await s->changed->wait(of->until);
    if (!wanted()) co_return std::nullopt;
    of->next = of->nodes.size();  // nobody asks on: there was no time to ask the rest
    agreement::word_outside out;
    s->former.silent.clear();
    for (const auto& n : of->all) {
        const auto said = s->former.heard.find(n.name);
        if (said == s->former.heard.end())
            s->former.silent.push_back(n.name);
        else if (const auto& has = said->second; !has.copies.empty() || has.replicated)
            out.said.push_back({n, has});
    }
    out.some_are_silent = !s->former.silent.empty();
    out.all_are_known = !s->former.unread && rules->earlier().are_all();
    out.in_haste = !needed && !out.is_all();
    co_return out;
}

void former_nodes::tell_of_silence(const session_ptr& s) {
    if (!s->former.silent.empty())
        users_.warn(s, about_former,
                    fmt::format("no answer from {}: a newer checkpoint of this job that is only there would "
                                "not be used",
                                compress_hostlist(s->former.silent)));
}

}  // namespace banyan::ckpt
