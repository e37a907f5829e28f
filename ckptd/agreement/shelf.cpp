// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/shelf.hpp"

#include <algorithm>

namespace banyan::ckpt::agreement {
namespace {

constexpr std::size_t most_lost = 1000;  // more is a broken machine

}  // namespace

shelf::copy* shelf::find(id number) {
    const auto at =
        std::find_if(copies_.begin(), copies_.end(), [&](const auto& c) { return c.number == number; });
    return at == copies_.end() ? nullptr : &*at;
}

const shelf::copy* shelf::find(const held& what, bool own) const {
    const auto at = std::find_if(copies_.begin(), copies_.end(),
                                 [&](const auto& c) { return c.what == what && c.own == own; });
    return at == copies_.end() ? nullptr : &*at;
}

std::vector<held> shelf::checked() const {
    std::vector<held> out;
    for (const auto& c : copies_)
        if (c.checked) out.push_back(c.what);
    return out;
}

void shelf::note_commit(const copy_key& key, level safety) {
    const auto raise = [&](std::optional<copy_key>& to) { to = std::max(to, std::optional(key)); };
    raise(memory_);
    if (safety == level::replicated)
        raise(replicated_);
    else
        came_to_less_[key] = true;
}

void shelf::note_passed_over(const copy_key& key) { came_to_less_[key] = false; }

void shelf::note_release(const std::optional<copy_key>& key, const std::optional<copy_key>& replicated,
                         std::uint64_t generation) {
    memory_ = base_ = key;
    replicated_ = replicated;
    if (replicated_ > key)
        replicated_.reset();  // what was acknowledged is lost: more has failed than it stood
    generation_ = generation;
    came_to_less_.clear();
    lost_.clear();
    for (auto& c : copies_) c.voted.reset();  // promises of an earlier round
}

std::optional<copy_key> shelf::newest(level safety) const {
    return safety == level::replicated ? replicated_ : memory_;
}

std::optional<copy_key> shelf::newest_part() const {
    auto out = std::max(memory_, replicated_);
    if (!lost_.empty()) out = std::max(out, std::optional(lost_.rbegin()->key));
    return out;
}

bool shelf::may_go(const copy& c) const {
    const auto& key = c.what.key;
    if (key == memory_ || key == replicated_) return false;
    // Not what all began from, nor what could stand in for it.
    if (key.generation < generation_ && key != base_) return true;
    const auto less = came_to_less_.find(key);
    if (less != came_to_less_.end() && !less->second) return true;
    const auto overtaken = [&](const std::optional<copy_key>& by) { return by && key < *by; };
    const bool may_be_replicated = c.voted == level::replicated || key == base_;
    if (may_be_replicated && less == came_to_less_.end()) return overtaken(replicated_);
    return overtaken(memory_);
}

std::vector<shelf::id> shelf::sweep() {
    std::vector<id> out;
    for (const auto& c : copies_)
        if (may_go(c)) out.push_back(c.number);
    std::erase_if(copies_,
                  [&](const auto& c) { return std::find(out.begin(), out.end(), c.number) != out.end(); });
    std::erase_if(came_to_less_, [&](const auto& one) {
        return std::none_of(copies_.begin(), copies_.end(),
                            [&](const auto& c) { return c.what.key == one.first; });
    });
    return out;
}

bool shelf::needs_elsewhere(const held& what) const {
    if (what.key == memory_ || what.key == replicated_ || lost_.contains(what)) return true;
    return find(what, true) != nullptr;
}

void shelf::lose(id number) {
    if (const auto* c = find(number); c && c->own && c->voted && lost_.size() < most_lost)
        lost_.insert(c->what);
    std::erase_if(copies_, [&](const auto& c) { return c.number == number; });
}

}  // namespace banyan::ckpt::agreement
