// SPDX-License-Identifier: BSD-3-Clause
//
// The model against the truth. A reported defect is right when one of its kind with a common object was
// planted; a planted one is hit when such a report is there. A leaf group is right where most of its hosts
// agree with the truth, and no other group has these hosts too; a rail by its number, also where the group
// lacks a leaf before it.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "test/bench/topo_bench.hpp"

namespace banyan::topo::bench {
namespace {

using generate::truth;

class line_printer {
  public:
    line_printer(const std::string& label, bool verbose) : label_(label), verbose_(verbose) {}
    void operator()(std::string_view what, std::string_view kind, const std::vector<std::string>& objects,
                    const std::string& evidence = {}) const {
        if (verbose_)
            fmt::print("{} {}: {} {}{}{}\n", label_, what, kind, fmt::join(objects, ", "),
                       evidence.empty() ? "" : " | ", evidence);
    }

  private:
    const std::string& label_;
    bool verbose_;
};

void score_defects(scores& s, const fabric& f, const truth& facts, const line_printer& tell) {
    std::map<std::string, std::size_t> known;
    for (std::size_t k = 0; k < generate::defect_kinds; ++k)
        known[std::string(generate::name_of(static_cast<generate::defect_kind>(k)))] = k;
    std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>>
        planted;  // kind, object -> defects
    for (std::size_t i = 0; i < facts.defects.size(); ++i)
        for (const auto& list : {facts.defects[i].objects, facts.defects[i].where})
            for (const auto& object : list)
                planted[{static_cast<std::size_t>(facts.defects[i].kind), object}].push_back(i);
    std::vector<bool> hit(facts.defects.size());
    for (const auto& d : f.defects) {
        if (is_notice(d)) continue;
        const auto kind = known.find(d.kind);
        if (kind == known.end()) {
            ++s.other_reports;
            tell("false alarm", d.kind, d.objects, d.evidence);
            continue;
        }
        bool right = false;
        auto objects = d.objects;
        objects.insert(objects.end(), d.where.begin(), d.where.end());
        for (const auto& object : objects)
            if (const auto at = planted.find({kind->second, object}); at != planted.end()) {
                right = true;
                for (const auto i : at->second) hit[i] = true;
            }
        ++s.kinds[kind->second].reported;
        s.kinds[kind->second].right += right;
        if (!right) tell("false alarm", d.kind, d.objects, d.evidence);
    }
    for (std::size_t i = 0; i < facts.defects.size(); ++i) {
        const auto kind = static_cast<std::size_t>(facts.defects[i].kind);
        ++s.kinds[kind].planted;
        s.kinds[kind].hit += hit[i];
        if (!hit[i]) tell("miss", generate::name_of(facts.defects[i].kind), facts.defects[i].objects);
    }
}

/// For each key of the first, the most frequent partner.
std::map<std::uint32_t, std::uint32_t> majority(
    const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> votes;
    for (const auto& [key, partner] : pairs) ++votes[key][partner];
    std::map<std::uint32_t, std::uint32_t> out;
    for (const auto& [key, partners] : votes) {
        std::uint32_t best = 0;
        for (const auto& [partner, n] : partners)
            if (n > best) {
                best = n;
                out[key] = partner;
            }
    }
    return out;
}

void score_groups(scores& s, const fabric& f, const truth& facts, const line_printer& tell) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> to_model, to_truth;
    for (const auto& h : facts.hosts) {
        const auto at = find_host(f, h.name);
        if (!h.named || at == none || f.hosts[at].leaf_group == none) continue;
        to_model.emplace_back(h.group, f.hosts[at].leaf_group);
        to_truth.emplace_back(f.hosts[at].leaf_group, h.group);
    }
    const auto model_of = majority(to_model), true_of = majority(to_truth);
    for (const auto& h : facts.hosts) {
        if (!h.named) continue;
        ++s.hosts;
        const auto at = find_host(f, h.name);
        const auto group = at == none ? none : f.hosts[at].leaf_group;
        const bool right = group != none && model_of.at(h.group) == group && true_of.at(group) == h.group;
        s.hosts_right += right;
        if (!right)
            tell("wrong group",
                 at == none      ? "no host"
                 : group == none ? "no group"
                                 : f.leaf_groups[group].id,
                 {h.name, fmt::format("group {}", h.group + 1)});
    }
}

void score_rails(scores& s, const fabric& f, const truth& facts, const line_printer& tell) {
    for (const auto& t : facts.hcas) {
        const auto at = std::lower_bound(f.hcas.begin(), f.hcas.end(), t.id,
                                         [](const hca& h, guid id) { return h.id < id; });
        const bool there = at != f.hcas.end() && at->id == t.id;
        const auto rail = t.rail;
        const auto& host = facts.hosts[t.host];
        ++s.hcas;
        const bool right = there && at->leaf != none && at->rail == rail;
        s.rails_right += right;
        if (!right)
            tell("wrong rail", there ? fmt::format("{} for {}", at->rail, rail) : "no HCA",
                 {fmt::format("0x{:016x}", t.id), t.name, host.name});
        // An HCA whose name is not its host's: found by its place alone.
        if (!host.named || t.name == host.name || t.name.starts_with(host.name + ' ')) continue;
        ++s.nameless;
        const bool attributed = there && at->host != none && f.hosts[at->host].name == host.name;
        s.nameless_right += attributed;
        if (!attributed)
            tell("wrong host", there && at->host != none ? f.hosts[at->host].name : "none",
                 {fmt::format("0x{:016x}", t.id), t.name, host.name});
    }
}

void score_levels(scores& s, const fabric& f, const truth& facts, const line_printer& tell) {
    std::size_t off = 0, told = 0;
    for (const auto& t : facts.switches) {
        const auto at = std::lower_bound(f.switches.begin(), f.switches.end(), t.id,
                                         [](const switch_node& sw, guid id) { return sw.id < id; });
        const bool there = at != f.switches.end() && at->id == t.id;
        ++s.switches;
        s.levels_right += there && at->level == t.level;
        if (!there || at->level != t.level)
            tell("wrong level", there ? fmt::format("{} for {}", at->level, t.level) : "no switch",
                 {fmt::format("0x{:016x}", t.id), there ? at->name : std::string()});
        off += t.off && there && at->box == at - f.switches.begin();
    }
    for (const auto& d : f.defects) told += is_notice(d);
    s.off += off;
    s.off_told += told;
    s.off_wrong += off != told;
}

double share(std::uint64_t part, std::uint64_t of) {
    return of == 0 ? 1 : static_cast<double>(part) / static_cast<double>(of);
}

std::string column(std::uint64_t part, std::uint64_t of) {
    return of == 0 ? "-" : fmt::format("{:.4f}", share(part, of));
}

}  // namespace

void score(scores& s, const fabric& f, const truth& facts, const std::string& label, bool verbose) {
    const line_printer tell(label, verbose);
    score_defects(s, f, facts, tell);
    score_groups(s, f, facts, tell);
    score_rails(s, f, facts, tell);
    score_levels(s, f, facts, tell);
}

void print_scores(const scores& s) {
    fmt::print("{:<17}{:>9}{:>9}{:>9}{:>9}{:>12}{:>9}\n", "defect", "planted", "missed", "reports", "false",
               "precision", "recall");
    for (std::size_t k = 0; k < generate::defect_kinds; ++k) {
        const auto& kind = s.kinds[k];
        fmt::print("{:<17}{:>9}{:>9}{:>9}{:>9}{:>12}{:>9}\n",
                   generate::name_of(static_cast<generate::defect_kind>(k)), kind.planted,
                   kind.planted - kind.hit, kind.reported, kind.reported - kind.right,
                   column(kind.right, kind.reported), column(kind.hit, kind.planted));
    }
    fmt::print("{:<17}{:>9}{:>9}{:>9}{:>9}\n\n", "other kinds", "-", "-", s.other_reports, s.other_reports);
}

void add_scores(banyan::bench::figures& figures, const scores& s, const std::string& of) {
    for (std::size_t k = 0; k < generate::defect_kinds; ++k) {
        const auto& kind = s.kinds[k];
        const auto name = generate::name_of(static_cast<generate::defect_kind>(k));
        if (kind.planted == 0) continue;  // with few fabrics not every kind has its turn
        figures.add(fmt::format("{}{}, precision", of, name), share(kind.right, kind.reported), "share",
                    "planted defects", ">=", 0.99);
        figures.add(fmt::format("{}{}, recall", of, name), share(kind.hit, kind.planted), "share",
                    "planted defects", ">=", 0.99);
    }
    figures.add(of + "reports of kinds that are never planted", static_cast<double>(s.other_reports),
                "reports", "planted defects");
    figures.add(of + "dumps refused", static_cast<double>(s.refused), "dumps", "-", "<=", 0);
    figures.add(of + "switches at their level", 100 * share(s.levels_right, s.switches), "%", "truth",
                ">=", 99.9);
    figures.add(of + "fabrics whose leaves without hosts are not all told as off",
                static_cast<double>(s.off_wrong), "fabrics", "truth");
    figures.add(of + "hosts in their leaf group", 100 * share(s.hosts_right, s.hosts), "%", "truth",
                ">=", 99.9);
    figures.add(of + "HCAs on their rail", 100 * share(s.rails_right, s.hcas), "%", "truth", ">=", 99.9);
    figures.add(of + "HCAs without their host's name, given to it", 100 * share(s.nameless_right, s.nameless),
                "%", "truth");
}

void add_clean_scores(banyan::bench::figures& figures, const scores& s, const std::string& of) {
    std::uint64_t reports = s.other_reports;
    for (const auto& kind : s.kinds) reports += kind.reported;
    const auto name = [&](const char* what) { return fmt::format("{} {}", of, what); };
    figures.add(name("defects"), static_cast<double>(reports), "reports", "truth", "<=", 0);
    figures.add(name("leaves that are off"), static_cast<double>(s.off), "leaves", "-");
    figures.add(name("of which not all are told, or others"), static_cast<double>(s.off_wrong), "fabrics",
                "truth", "<=", 0);
    figures.add(name("switches at their level"), 100 * share(s.levels_right, s.switches), "%", "truth",
                ">=", 99.9);
    figures.add(name("hosts in their leaf group"), 100 * share(s.hosts_right, s.hosts), "%", "truth",
                ">=", 99.9);
    figures.add(name("HCAs on their rail"), 100 * share(s.rails_right, s.hcas), "%", "truth", ">=", 99.9);
}

}  // namespace banyan::topo::bench
