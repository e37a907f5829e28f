// SPDX-License-Identifier: BSD-3-Clause
#include "test/simulator/launch_nodes.hpp"

namespace banyan::ckpt::simulator {

std::optional<std::uint32_t> launch_nodes::slot_of(std::uint32_t node) const {
    const auto at = std::find(assignment_.begin(), assignment_.end(), node);
    if (at == assignment_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(at - assignment_.begin());
}

void launch_nodes::choose_groups() {
    const auto most = settings_.slots / settings_.group;
    const auto lives = [](const auto& n) { return n.up; };
    const auto up = static_cast<std::uint32_t>(std::count_if(nodes_.begin(), nodes_.end(), lives));
    auto groups = chance(0.4) ? most : settings_.min_groups + below(most - settings_.min_groups + 1);
    groups = std::max(settings_.min_groups, std::min(groups, up / settings_.group));
    std::vector<std::uint32_t> left;
    for (; slots() > groups * settings_.group; assignment_.pop_back())
        if (nodes_[assignment_.back()].up) left.push_back(assignment_.back());
    for (auto& node : assignment_)
        if (!nodes_[node].up && !left.empty()) {
            node = left.back();
            left.pop_back();
        }
    while (slots() < groups * settings_.group) {
        std::vector<std::uint32_t> free;
        for (std::uint32_t i = 0; i < nodes_.size(); ++i)
            if (nodes_[i].up && !slot_of(i)) free.push_back(i);
        for (std::uint32_t i = 0; free.empty(); ++i)
            if (!slot_of(i)) free.push_back(i);
        assignment_.push_back(free[below(free.size())]);
    }
}

void launch_nodes::replace_dead() {
    for (auto& slot : assignment_)
        if (!nodes_[slot].up) {
            for (std::uint32_t i = 0; i < nodes_.size(); ++i)
                if (nodes_[i].up && !slot_of(i)) {
                    slot = i;
                    break;
                }
            if (!nodes_[slot].up) restart_node(slot);
        }
}

std::set<std::uint32_t> launch_nodes::whom_to_ask(std::uint32_t i) const {
    std::vector<agreement::node_address> members;
    for (const auto member : assignment_) members.push_back(address_of(member));
    auto named = nodes_[i].agreed.coordinating()->former();
    for (auto& one : nodes_[i].agreed.earlier().list()) named.push_back(std::move(one));
    std::set<std::uint32_t> out;
    for (const auto& one : agreement::whom_to_ask(members, named)) out.insert(number_of(one.name));
    return out;
}

bool launch_nodes::waits_for_former(std::uint32_t i) {
    auto& since = nodes_[i].asks_since;
    const auto known = whom_to_ask(i);
    if (std::any_of(known.begin(), known.end(), [&](auto other) { return !answers(i, other); })) {
        if (!since) since = now();
        const bool needed = nodes_[i].agreed.needs_outside();
        if (now() < *since + settings_.patience_us / (needed ? 1 : 5)) return true;
    }
    since.reset();
    return false;
}

std::optional<std::set<std::uint32_t>> launch_nodes::former_nodes(std::uint32_t i) {
    std::set<std::uint32_t> known;
    if (!settings_.moves) {  // all are of the job's allocation
        for (std::uint32_t other = 0; other < nodes_.size(); ++other)
            if (!slot_of(other)) known.insert(other);
        known_of_.insert(known.begin(), known.end());
        return known;
    }
    auto& n = nodes_[i];
    if (n.agreed.has_begun()) return std::nullopt;
    claim_.generation = generation_;
    known = whom_to_ask(i);
    known_of_.insert(known.begin(), known.end());
    // What is promised does not hang on what is known where there is a directory, or a plan. Who is silent is
    // given up, though he may have answered in an earlier life of this daemon, and so is who is known to
    // nobody now.
    const auto life = n.daemon_life;
    if (asked_by_ != 0 && asked_by_ != life) {
        earlier_.push_back({promised_, given_up_});
        std::erase_if(heard_, [&](auto other) { return !slot_of(other) && !known.contains(other); });
    }
    asked_by_ = life;
    const auto has_plan = [&](auto member) { return nodes_[member].has_plan; };
    const bool planned = std::any_of(assignment_.begin(), assignment_.end(), has_plan);
    const auto is_named = [&](auto other) {
        return settings_.claims || known.contains(other) ||
               (planned && std::find(plan_.begin(), plan_.end(), other) != plan_.end());
    };
    promised_ = {{assignment_.begin(), assignment_.end()}, {}, {}};
    given_up_.clear();
    for (std::uint32_t other = 0; other < nodes_.size(); ++other) {
        if (slot_of(other)) continue;
        if (!answers(i, other)) given_up_.insert(other);
        if (is_named(other)) (answers(i, other) ? promised_.nodes : promised_.silent).insert(other);
    }
    for (const auto one : promised_.nodes)
        promised_.replicated =
            std::max(promised_.replicated, nodes_[one].agreed.committed(agreement::level::replicated));
    return known;
}

// Who answers, and what the others have said before. Who is awaited is waited for.
agreement::word_outside launch_nodes::held_outside(std::uint32_t asks, const std::set<std::uint32_t>& known) {
    auto& n = nodes_[asks];
    const auto* c = n.agreed.coordinating();
    if (!c || !c->awaited()) n.heard.clear();
    agreement::word_outside out;
    for (const auto other : known) {
        if (answers(asks, other)) {
            heard_.insert(other);
            auto& them = nodes_[other].agreed;
            them.end_launch(n.agreed.generation());
            auto& [where, said] = n.heard[other];
            where = address_of(other);
            said.copies = them.copies().checked();
            said.replicated = them.committed(agreement::level::replicated);
            said.begun = them.copies().begun();
        }
        if (const auto at = n.heard.find(other); at != n.heard.end())
            out.said.push_back(at->second);
        else
            out.some_are_silent = true;
    }
    out.in_haste = settings_.moves && !n.agreed.has_begun() && !n.agreed.needs_outside() && !out.is_all();
    return out;
}

}  // namespace banyan::ckpt::simulator
