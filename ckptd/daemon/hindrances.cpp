// SPDX-License-Identifier: BSD-3-Clause
//
// What keeps a launch from beginning, in words; and when the ranks are not to wait for it any longer.
#include <fmt/format.h>

#include "ckptd/daemon/launches.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_hindrance = 1000;  // bytes, of what one says of it
constexpr milliseconds usual_answer{1000};    // of storage

std::string in_short(std::string_view why) { return printable(why.substr(0, most_hindrance)); }

// That storage is asked hinders nobody until it has been silent for a while.
bool hinders(const std::optional<hindrance>& one) {
    if (!one) return false;
    return one->what != hindrance::of::answer || clock::now() >= one->since + usual_answer;
}

std::string silence_in_words(const session& s, const job_agreement::silence& of) {
    return fmt::format("node {}: {}", s.request.nodes[of.slot].name, of.why.text());
}

// The slot of the node that has had one for longest, at the first one. Of those that are waited for: what
// kept another one is over, whether it has said so or not.
std::optional<std::pair<std::uint32_t, hindrance>> longest_hindrance(const session& s) {
    std::optional<std::pair<std::uint32_t, hindrance>> out;
    const auto* c = s.agreed->rules().coordinating();
    if (!c) return out;
    const bool are_new = s.hindered.attempt == c->stage().first;
    for (const auto slot : c->waits_for()) {
        const hindrance* one = nullptr;
        if (slot == s.slot && hinders(s.hindered.here)) one = &*s.hindered.here;
        if (const auto at = s.hindered.at.find(slot); are_new && at != s.hindered.at.end()) one = &at->second;
        if (one && (!out || one->since < out->second.since)) out.emplace(slot, *one);
    }
    return out;
}

// Of what the first slot's daemon has to know first.
error undecided(const session& s, const hindrance& by) {
    if (by.what != hindrance::of::holder)
        return {errc::unavailable, fmt::format("the ranks do not begin: node {}: {}", s.self(), by.why), ""};
    return {errc::unavailable, fmt::format("the ranks do not begin: {}", by.why),
            "have banyan-ckptd there started again; where the node is lost for good, submit the job anew: "
            "that one begins from what its directory holds"};
}

}  // namespace

std::string what_is_waited_for(const session& s) {
    const auto* c = s.agreed->rules().coordinating();
    const auto missing = s.agreed->missing();
    if (!c && missing) return silence_in_words(s, *missing);
    if (!c) return fmt::format("node {} has not said what from", s.request.nodes[0].name);
    using phase = agreement::coordinator::phase;
    if (s.hold.watching)
        return fmt::format("whether another job still uses {} is being looked at", s.request.dir);
    if (c->now() == phase::collecting && !s.storage.problem.empty()) return s.storage.problem;
    std::vector<std::string> nodes;
    for (const auto slot : c->waits_for()) nodes.push_back(s.request.nodes[slot].name);
    const auto who = nodes.empty() ? std::string("all nodes") : compress_hostlist(nodes);
    if (missing) return silence_in_words(s, *missing);
    if (c->now() == phase::collecting && s.hindered.choice) return s.hindered.choice->why;
    if (const auto hindered = longest_hindrance(s))
        return fmt::format("node {}: {}", s.request.nodes[hindered->first].name, hindered->second.why);
    if (c->now() == phase::collecting) return fmt::format("{}: not heard what is there", who);
    if (c->now() == phase::preparing) return fmt::format("{}: the state is being brought", who);
    return fmt::format("{}: not heard that all begin", who);
}

std::optional<error> restorer::given_up(const session& s) const {
    if (s.agreed->rules().has_begun()) return std::nullopt;
    // Nothing may begin from a directory that is another's.
    if (s.agreed->rules().coordinating() && s.storage.refused) return s.storage.refused;
    const auto limit = core_.config.restore_timeout;
    const auto is_over = [&](clock::time_point since) {
        return limit != limit.zero() && clock::now() >= since + limit;
    };
    if (const auto missing = s.agreed->missing(); missing && is_over(missing->since))
        return error{errc::unavailable,
                     fmt::format("the ranks here do not begin: {}", silence_in_words(s, *missing)),
                     "look into the checkpoint daemon's log on that node, or leave the node out"};
    if (!s.agreed->rules().coordinating()) {
        if (s.hindered.given_up.empty()) return std::nullopt;
        return error{errc::unavailable, s.hindered.given_up, ""};
    }
    if (s.hindered.choice && is_over(s.hindered.choice->since)) return undecided(s, *s.hindered.choice);
    const auto hindered = longest_hindrance(s);
    if (!hindered || !is_over(hindered->second.since)) return std::nullopt;
    return error{errc::unavailable,
                 fmt::format("the ranks do not begin, nor from an older step: node {}: {}",
                             s.request.nodes[hindered->first].name, hindered->second.why),
                 ""};
}

json launches::hindrance_of(const session_ptr& s) const {
    json out = json::object();
    if (s->agreed->rules().has_begun()) return out;
    if (hinders(s->hindered.here)) out["hindered"] = in_short(s->hindered.here->why);
    if (!s->agreed->rules().coordinating()) return out;
    if (const auto why = to_.restores.given_up(*s)) out["given_up"] = in_short(why->text());
    return out;
}

void take_hindrance(const session_ptr& s, std::uint32_t slot, const json& said) {
    const json_fields in(said);
    const auto text = [&](const char* name) -> std::string {
        if (!in.has(name)) return {};
        auto read = in.text(name, most_hindrance);
        return read && is_printable(*read) ? std::move(*read) : std::string("it does not say why");
    };
    auto& known = s->hindered;
    if (const auto* c = s->agreed->rules().coordinating()) {
        known.enter(c->stage().first);
        auto why = text("hindered");
        if (why.empty())
            known.at.erase(slot);
        else
            known.at.try_emplace(slot, hindrance{{}, {}, clock::now()}).first->second.why = std::move(why);
    } else if (slot == 0 && known.given_up != text("given_up")) {
        known.given_up = text("given_up");
        s->notify();
    }
}

}  // namespace banyan::ckpt
