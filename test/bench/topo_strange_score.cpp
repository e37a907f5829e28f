// SPDX-License-Identifier: BSD-3-Clause
//
// The model against the truth of strange fabrics. A reported defect is right when one of its kind with a
// common object or place was planted. A false one of which the model is less than half sure, a host in no
// group, an HCA without a rail or left out as of nobody counts as unknown; all else that is not right is
// wrong. Of HCAs that are not for compute it must say what storage ones are, and leave the others out; also
// those without a LID.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/bench/topo_strange.hpp"

namespace banyan::topo::bench {
namespace {

using generate::truth;

template <class List>
const typename List::value_type* by_guid(const List& list, guid id) {
    const auto at =
        std::lower_bound(list.begin(), list.end(), id, [](const auto& n, guid g) { return n.id < g; });
    return at != list.end() && at->id == id ? &*at : nullptr;
}

class strange_judge {
  public:
    strange_judge(strange_scores& s, const fabric& f, bool refused, const truth& facts,
                  const std::string& label, bool verbose)
        : s_(s), f_(f), facts_(facts), label_(label), refused_(refused), verbose_(verbose) {
        for (const auto& e : f.excluded) kind_of_.emplace(e.id, e.kind);
    }

    void judge() {
        ++s_.fabrics;
        s_.refused += refused_;
        defects();
        groups();
        rails();
        roles();
        levels();
    }

  private:
    void tell(const char* what, std::string_view said, const std::vector<std::string>& objects) const {
        if (verbose_)
            fmt::print("{}: {}: {} {}\n", label_, what, said,
                       fmt::join(std::span(objects).first(std::min<std::size_t>(objects.size(), 4)), ", "));
    }

    void defects() {
        std::map<std::pair<std::string, std::string>, std::set<std::size_t>> planted;  // kind, object
        for (std::size_t i = 0; i < facts_.defects.size(); ++i)
            for (const auto& list : {facts_.defects[i].objects, facts_.defects[i].where})
                for (const auto& object : list)
                    planted[{std::string(name_of(facts_.defects[i].kind)), object}].insert(i);
        std::set<std::size_t> hit;
        for (const auto& d : f_.defects) {
            if (is_notice(d) || (!facts_.tree && d.kind == "unknown-shape")) continue;
            bool right = false;
            for (const auto& list : {d.objects, d.where})
                for (const auto& object : list)
                    if (const auto at = planted.find({d.kind, object}); at != planted.end()) {
                        right = true;
                        hit.insert(at->second.begin(), at->second.end());
                    }
            count(d, right);
        }
        for (std::size_t i = 0; i < facts_.defects.size(); ++i) {
            const std::string kind(name_of(facts_.defects[i].kind));
            auto& of = s_.defects[kind].of;
            ++of.planted;
            of.hit += hit.contains(i);
            if (!hit.contains(i)) tell("missed", kind, facts_.defects[i].objects);
        }
        s_.sound += facts_.defects.empty();
    }

    void count(const defect& d, bool right) {
        auto& score = s_.defects[d.kind];
        const bool perhaps = !right && d.confidence < 0.5;
        score.perhaps += perhaps;
        if (perhaps) return;
        ++score.of.reported;
        score.of.right += right;
        if (right) return;
        s_.false_on_sound += facts_.defects.empty();
        auto objects = d.objects;
        objects.resize(std::min<std::size_t>(objects.size(), 3));
        objects.push_back("| " + d.evidence);
        tell("false", d.kind, objects);
    }

    std::uint32_t group_of(const generate::true_host& h) const {
        const auto at = find_host(f_, h.name);
        return at == none ? none : f_.hosts[at].leaf_group;
    }

    /// A group is right where most of its hosts agree with the truth, and no other has these hosts too.
    void groups() {
        std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> to_model, to_truth;
        for (const auto& h : facts_.hosts)
            if (const auto g = group_of(h); g != none) ++to_model[h.group][g], ++to_truth[g][h.group];
        const auto most = [](const std::map<std::uint32_t, std::uint32_t>& votes) {
            return std::max_element(votes.begin(), votes.end(),
                                    [](auto& a, auto& b) { return a.second < b.second; })
                ->first;
        };
        for (const auto& h : facts_.hosts) {
            if (h.unready) continue;
            const auto g = group_of(h);
            const bool right = g != none && most(to_model[h.group]) == g && most(to_truth[g]) == h.group;
            s_.groups.add(right, g == none);
            if (!right) tell("group", g == none ? "unknown" : f_.leaf_groups[g].id, {h.name});
        }
    }

    void rails() {
        for (const auto& t : facts_.hcas) {
            if (facts_.hosts[t.host].unready) continue;
            const auto* h = by_guid(f_.hcas, t.id);
            const bool known = h && h->host != none && h->leaf != none;
            const bool right =
                known && h->rail == t.rail && f_.hosts[h->host].name == facts_.hosts[t.host].name;
            s_.rails.add(right, !known);
            if (!right) tell("rail", known ? fmt::format("{} for {}", h->rail, t.rail) : "unknown", {t.name});
        }
    }

    void role(guid id, const std::string& name, bool compute, bool storage) {
        const auto left_out = kind_of_.find(id);
        const auto* h = by_guid(f_.hcas, id);
        const std::string said = left_out != kind_of_.end() ? left_out->second
                                 : h && h->host != none     ? "compute"
                                                            : "unattributed";
        const bool right =
            said != "unattributed" && compute == (said == "compute") && (!storage || said == "storage");
        s_.roles.add(right, said == "unattributed");
        if (!right) tell("role", said, {name});
    }

    void roles() {
        for (const auto& t : facts_.hcas) role(t.id, t.name, !facts_.hosts[t.host].unready, false);
        for (const auto& t : facts_.others)
            if (t.sure) role(t.id, t.name, false, t.what == generate::duty::storage_hca);
    }

    void levels() {
        for (const auto& t : facts_.switches) {
            const auto* sw = by_guid(f_.switches, t.id);
            const bool known = sw && sw->level != UINT8_MAX;
            s_.levels.add(known && sw->level == t.level, !known);
            if (!known || sw->level != t.level)
                tell("level", known ? fmt::format("{} for {}", sw->level, t.level) : "unknown",
                     {sw ? sw->name : fmt::format("0x{:016x}", t.id)});
        }
    }

    strange_scores& s_;
    const fabric& f_;
    const truth& facts_;
    const std::string& label_;
    bool refused_, verbose_;
    std::map<guid, std::string> kind_of_;  ///< of what is left out
};

}  // namespace

void score_strange(strange_scores& s, const fabric& f, bool refused, const truth& facts,
                   const std::string& label, bool verbose) {
    strange_judge(s, f, refused, facts, label, verbose).judge();
}

}  // namespace banyan::topo::bench
