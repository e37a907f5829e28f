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

std::set<std::uint32_t> launch_nodes::known_former() const {
    std::set<std::uint32_t> known;
    for (const auto member : assignment_)
        known.insert(nodes_[member].former.begin(), nodes_[member].former.end());
    return known;
}

bool launch_nodes::waits_for_former(std::uint32_t i) {
    auto& since = nodes_[i].asks_since;
    const auto known = known_former();
    const auto silent = [&](auto other) { return !slot_of(other) && !answers(i, other); };
    if (std::any_of(known.begin(), known.end(), silent)) {
        if (!since) since = now();
        const bool needed = !newest_is_whole(i, claim_.generation);
        if (now() < *since + settings_.patience_us / (needed ? 1 : 5)) return true;
    }
    since.reset();
    return false;
}

std::optional<std::set<std::uint32_t>> launch_nodes::former_nodes(std::uint32_t i) {
    std::set<std::uint32_t> known;
    if (!settings_.moves) {  // all are of the job's allocation
        for (std::uint32_t other = 0; other < nodes_.size(); ++other) known.insert(other);
        known_of_ = known;
        return known;
    }
    auto& n = nodes_[i];
    if (n.agreed.has_begun()) return std::nullopt;
    claim_.generation = generation_;
    known = known_former();
    known_of_.insert(known.begin(), known.end());
    // What is promised does not hang on what is known where there is a directory. Who is silent is given up,
    // though he may have answered in an earlier life of this daemon, and so is who is known to nobody now.
    const auto life = n.daemon_life;
    if (asked_by_ != 0 && asked_by_ != life) {
        earlier_.push_back({promised_, given_up_});
        std::erase_if(heard_, [&](auto other) { return !slot_of(other) && !known.contains(other); });
    }
    asked_by_ = life;
    promised_ = {assignment_.begin(), assignment_.end()};
    given_up_.clear();
    for (std::uint32_t other = 0; other < nodes_.size(); ++other) {
        if (answers(i, other) && (settings_.claims || known.contains(other))) promised_.insert(other);
        if (!answers(i, other) && !slot_of(other)) given_up_.insert(other);
    }
    return known;
}

bool launch_nodes::newest_is_whole(std::uint32_t i, std::uint64_t claimed) const {
    const auto newest = nodes_[i].agreed.coordinating()->newest_if_whole();
    return settings_.claims && claimed != 0 && newest && newest->generation >= first_round(claimed);
}

// Only nodes that answer: nobody waits for the others.
agreement::agreement::holdings launch_nodes::held_outside(std::uint32_t asks,
                                                          const std::set<std::uint32_t>& known) {
    agreement::agreement::holdings out;
    for (const auto other : known) {
        if (slot_of(other) || !answers(asks, other)) continue;
        heard_.insert(other);
        nodes_[other].agreed.end_launch(nodes_[asks].agreed.generation());
        auto& [where, said] = out.emplace_back();
        where.name = std::to_string(other);
        said.copies = nodes_[other].agreed.copies().checked();
        said.replicated = nodes_[other].agreed.committed(agreement::level::replicated);
        said.begun = nodes_[other].agreed.copies().begun();
    }
    return out;
}

}  // namespace banyan::ckpt::simulator
