// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/fabric_plan.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace banyan::fault {
namespace {

using step_of = fabric_step::kind;

constexpr std::size_t most_named = 4;

bool has_end(const object& o, const end_point& e) {
    return std::ranges::any_of(o.ends,
                               [&](const auto& own) { return own.guid == e.guid && own.port == e.port; });
}

// A switch has one end, without a port: all its links are parts of it. A host has the ends of its HCAs.
bool is_part_of(const fabric_fault& f, const object& larger) {
    if (larger.ends.empty() || f.object.ends.empty()) return false;
    if (f.object.kind != object_kind::hca && f.object.kind != object_kind::link) return false;
    if (larger.kind == object_kind::sw)
        return std::ranges::any_of(f.object.ends,
                                   [&](const auto& e) { return e.guid == larger.ends.front().guid; });
    return larger.kind == object_kind::node && has_end(larger, f.object.ends.front());
}

std::string cause_of_parts(const object& whole, const std::vector<const fabric_fault*>& gone) {
    std::vector<std::string> names;
    for (const auto* f : gone)
        if (names.size() < most_named)
            names.push_back(whole.kind == object_kind::node ? f->object.hca : f->object.text());
    const auto more = gone.size() - names.size();
    const auto list =
        fmt::format("{}{}", fmt::join(names, ", "), more ? fmt::format(" and {} more", more) : "");
    if (whole.kind == object_kind::node)
        return fmt::format("{} of {} HCAs of {} are still gone: {}", gone.size(), whole.ends.size(),
                           whole.node, list);
    return fmt::format("switch {} is back without {} of its links: {}", whole.node, gone.size(), list);
}

// What it was before parts of it came back; empty for what has no parts.
std::string cause_of_whole(const object& whole) {
    if (whole.kind == object_kind::node)
        return fmt::format("all {} HCAs of {} are gone", whole.ends.size(), whole.node);
    return whole.kind == object_kind::sw ? fmt::format("switch {} is gone", whole.node) : std::string();
}

std::string own_cause(const incident& i) {
    const std::string_view all = i.cause;
    return std::string(all.ends_with(not_accepted) ? all.substr(0, all.size() - not_accepted.size()) : all);
}

class planner {
  public:
    planner(const std::map<std::uint64_t, incident>& known, const look_for& seen, std::int64_t now_ms)
        : seen_(seen), now_ms_(now_ms) {
        for (const auto& [number, i] : known)
            if (i.boot_id == fabric_boot) known_.emplace_back(&i, key_of(i.object));
        for (const auto& [i, key] : known_) newest_[key] = i;
    }

    std::vector<fabric_step> run(const std::vector<fabric_fault>& missing,
                                 const std::vector<fabric_fault>& passing) {
        for (const auto& f : missing) {
            still_.emplace(f.key(), &f);
            covered_.insert(f.covers.begin(), f.covers.end());
        }
        for (const auto& f : missing) grow(f);
        for (const auto& [i, key] : known_)
            if (i->closed_ms == 0 && !grown_.contains(i->number)) look_at(*i, key, missing);
        for (const auto& [key, f] : still_)
            if (!taken_.contains(key)) begin(*f, key, false);
        for (const auto& f : passing)
            if (const auto key = f.key(); !still_.contains(key) && !covered_.contains(key))
                begin(f, key, true);
        return std::move(steps_);
    }

  private:
    // The oldest of the incidents that turn out to be parts of one fault stands for it.
    void grow(const fabric_fault& f) {
        if (f.covers.empty()) return;
        const std::set<std::string> parts(f.covers.begin(), f.covers.end());
        const incident* first = nullptr;
        const auto whole = f.key();
        for (const auto& [i, key] : known_) {
            if (i->closed_ms != 0) continue;
            if (key == whole) return;
            const bool young = now_ms_ - i->line_ms <= grows_within_ms;
            if (!first && young && parts.contains(key)) first = i;
        }
        if (!first) return;
        grown_.insert(first->number);
        taken_.insert(whole);
        steps_.push_back({step_of::grow, first->number, f, {}, false});
    }
    void look_at(const incident& i, const std::string& key, const std::vector<fabric_fault>& missing) {
        if (const auto whole = still_.find(key); whole != still_.end()) {
            if (!taken_.insert(key).second) return;
            // What was partly back is gone again.
            if (whole->second->cause != i.cause)
                steps_.push_back({step_of::again, i.number, *whole->second, {}, false});
            else if (is_planned(i) && whole->second->how_bad > severity::notice)
                steps_.push_back({step_of::grow, i.number, *whole->second, {}, false});
            return;
        }
        std::vector<const fabric_fault*> gone;
        for (const auto& f : missing)
            if (is_part_of(f, i.object) && !taken_.contains(f.key())) gone.push_back(&f);
        if (gone.empty()) {
            const bool larger = covered_.contains(key);
            if (!larger && !is_back(i)) return;
            fabric_step done{step_of::close, i.number, {}, {}, false};
            done.words = larger ? fabric_larger : fabric_is_back;
            done.fault.cause = cause_of_whole(i.object);
            if (done.fault.cause.empty()) done.fault.cause = own_cause(i);
            steps_.push_back(std::move(done));
            return;
        }
        // What nobody plans any more is a fault of its own: a note would never become one.
        for (const auto* f : gone)
            if (!is_planned(i) || f->how_bad <= severity::notice) taken_.insert(f->key());
        auto words = cause_of_parts(i.object, gone);
        if (words != i.cause) steps_.push_back({step_of::part, i.number, {}, std::move(words), false});
    }
    // That nothing is missed is not enough: a snapshot of the time when it was gone may be what is accepted.
    bool is_back(const incident& i) {
        const auto found = seen_(i.object);
        if (!found) return i.reason != link_slow;
        if (!*found && !i.cause.ends_with(not_accepted))
            steps_.push_back({step_of::part, i.number, {}, i.cause + std::string(not_accepted), false});
        return *found;
    }
    void begin(const fabric_fault& f, const std::string& key, bool back) {
        const auto before = newest_.find(key);
        const auto* i = before == newest_.end() ? nullptr : before->second;
        const bool same = i && (i->closed_ms == 0 || now_ms_ - i->closed_ms <= flaps_within_ms);
        steps_.push_back({same ? step_of::again : step_of::open, same ? i->number : 0, f, {}, back});
    }

    const look_for& seen_;
    std::int64_t now_ms_;
    std::vector<std::pair<const incident*, std::string>> known_;  // of the fabric, and the key of each
    std::map<std::string, const incident*> newest_;
    std::map<std::string, const fabric_fault*> still_;
    std::set<std::string> covered_, taken_;
    std::set<std::uint64_t> grown_;
    std::vector<fabric_step> steps_;
};

}  // namespace

std::vector<fabric_step> plan_for(const std::map<std::uint64_t, incident>& known,
                                  const std::vector<fabric_fault>& missing,
                                  const std::vector<fabric_fault>& passing, const look_for& seen,
                                  std::int64_t now_ms) {
    return planner(known, seen, now_ms).run(missing, passing);
}

}  // namespace banyan::fault
