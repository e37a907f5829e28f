// SPDX-License-Identifier: BSD-3-Clause
//
// The data of the page. Columns of numbers are packed (see pack); an index is one more than the fabric's, 0
// is none.
//
//   title, figures       texts
//   rates                [text, colour] of each rate that occurs
//   hosts                name: list, group: column
//   groups               id: list, leaves: column of counts, leaf: column, rail by rail
//   untold               cables, guids: whether the source did not tell these, which are made up then
//   switches             name: list; box (itself, or what it is a plane of), guid, level, ports: columns
//   hcas                 part: list of name endings ("+" = after the host's name, "=" = the whole name);
//                        guid, host, leaf, port, rail, name (into part), rate: columns
//   links                between boxes: a, ap (port), b, bp, rate: columns
//   odd                  [low, high, count, usual, severity] of each bundle that is not well
//   spine_groups         spines and groups of each
//   cores, stray         other switches
//   defects              [kind, severity (0: no defect, a notice), evidence, objects, switches, hcas,
//                        hosts, switches at the ends of its links, whether the leaf group is what is broken]
//   job                  text, colors, marks: [host, slot, colour, spare, label, about]; or null
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topo/draw/escape.hpp"
#include "topo/draw/html.hpp"
#include "topo/draw/palette.hpp"

namespace banyan::topo::draw {
namespace {

using nlohmann::json;
using column = std::vector<std::uint64_t>;

constexpr std::size_t most_defects = 20'000;
constexpr std::size_t most_objects = 64;

template <class List, class Get>
std::string packed(const List& list, Get get) {
    column out;
    out.reserve(list.size());
    for (const auto& item : list) out.push_back(get(item));
    return pack(out);
}

std::uint64_t plus_one(std::uint32_t index) { return index == none ? 0 : std::uint64_t{index} + 1; }

std::string packed_indices(const std::vector<std::uint32_t>& list) { return packed(list, plus_one); }

class rate_table {
  public:
    explicit rate_table(const scene& s) {
        for (const auto& r : s.rates) index(r.rate);
    }
    std::uint64_t index(const link_rate& r) {
        const auto at = std::find(rates_.begin(), rates_.end(), r);
        if (at == rates_.end()) rates_.push_back(r);
        return static_cast<std::uint64_t>(std::find(rates_.begin(), rates_.end(), r) - rates_.begin());
    }
    json list() const {
        auto out = json::array();
        for (const auto& r : rates_) out.push_back({rate_text(r), rate_color(r)});
        return out;
    }

  private:
    std::vector<link_rate> rates_;  // a handful
};

json hosts_of(const fabric& f) {
    auto names = json::array();
    for (const auto& h : f.hosts) names.push_back(clean(h.name));
    return {{"name", names},
            {"group", packed(f.hosts, [](const auto& h) { return plus_one(h.leaf_group); })}};
}

json groups_of(const fabric& f) {
    auto ids = json::array();
    std::vector<std::uint32_t> leaves;
    for (const auto& g : f.leaf_groups) {
        ids.push_back(clean(g.id));
        leaves.insert(leaves.end(), g.leaves.begin(), g.leaves.end());
    }
    return {{"id", ids},
            {"leaves", packed(f.leaf_groups, [](const auto& g) { return g.leaves.size(); })},
            {"leaf", packed_indices(leaves)}};
}

json switches_of(const fabric& f) {
    auto names = json::array();
    for (const auto& s : f.switches) names.push_back(clean(s.name));
    column boxes;
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) boxes.push_back(plus_one(box_of(f, i)));
    return {{"name", names},
            {"box", pack(boxes)},
            {"guid", packed(f.switches, [](const auto& s) { return s.id; })},
            {"level", packed(f.switches, [](const auto& s) { return s.level; })},
            {"ports", packed(f.switches, [](const auto& s) { return s.ports; })}};
}

json hcas_of(const fabric& f, rate_table& rates) {
    std::unordered_map<std::string, std::uint64_t> number_of;
    auto parts = json::array();
    column names;
    for (const auto& h : f.hcas) {
        auto name = clean(h.name);
        const auto host = h.host == none ? std::string() : clean(f.hosts[h.host].name);
        if (!host.empty() && name.starts_with(host))
            name.replace(0, host.size(), "+");
        else
            name.insert(0, 1, '=');
        const auto [at, fresh] = number_of.try_emplace(name, parts.size());
        if (fresh) parts.push_back(name);
        names.push_back(at->second);
    }
    return {{"part", parts},
            {"name", pack(names)},
            {"guid", packed(f.hcas, [](const auto& h) { return h.id; })},
            {"host", packed(f.hcas, [](const auto& h) { return plus_one(h.host); })},
            {"leaf", packed(f.hcas, [](const auto& h) { return plus_one(h.leaf); })},
            {"port", packed(f.hcas, [](const auto& h) { return h.leaf_port; })},
            {"rail", packed(f.hcas, [](const auto& h) { return h.rail; })},
            {"rate", packed(f.hcas, [&](const auto& h) { return rates.index(h.rate); })}};
}

json links_of(const fabric& f, rate_table& rates) {
    std::vector<link> list;
    for (const auto& l : f.links)
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) list.push_back(l);
    std::sort(list.begin(), list.end(), [](const link& x, const link& y) {
        return std::pair(x.a.index, x.a.port) < std::pair(y.a.index, y.a.port);
    });
    return {{"a", packed(list, [&](const auto& l) { return plus_one(box_of(f, l.a.index)); })},
            {"ap", packed(list, [](const auto& l) { return l.a.port; })},
            {"b", packed(list, [&](const auto& l) { return plus_one(box_of(f, l.b.index)); })},
            {"bp", packed(list, [](const auto& l) { return l.b.port; })},
            {"rate", packed(list, [&](const auto& l) { return rates.index(l.rate); })}};
}

json defects_of(const fabric& f, const scene& s) {
    auto out = json::array();
    for (const auto i : in_order(s)) {
        if (out.size() == most_defects) break;
        auto objects = json::array();
        for (const auto& o : f.defects[i].objects)
            if (objects.size() < most_objects) objects.push_back(clean(o));
        const auto& t = s.defects[i];
        std::vector<std::uint32_t> ends;
        for (const auto l : t.links)
            for (const auto& end : {f.links[l].a, f.links[l].b})
                if (end.kind == node_kind::switch_node) ends.push_back(box_of(f, end.index));
        out.push_back({clean(f.defects[i].kind), t.severity, clean(f.defects[i].evidence), objects,
                       t.switches, t.hcas, t.hosts, ends, t.of_group ? 1 : 0});
    }
    return out;
}

json job_data(const job* j) {
    if (!j) return nullptr;
    auto marks = json::array(), colors = json::array();
    for (const auto& m : j->marks)
        marks.push_back({m.host, m.slot == none ? -1 : std::int64_t{m.slot}, m.color, m.spare, clean(m.label),
                         clean(m.about)});
    for (std::size_t i = 0; i < std::min(j->colors.size(), job_colors.size()); ++i)
        colors.push_back(clean(j->colors[i]));
    return {{"text", clean(j->text)}, {"colors", colors}, {"marks", marks}};
}

}  // namespace

std::string pack(const std::vector<std::uint64_t>& numbers) {
    std::string out;
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < numbers.size();) {
        const auto delta = numbers[i] - last;  // of 64 bits, so that it wraps for a falling column
        std::size_t run = 0;
        while (i < numbers.size() && numbers[i] - last == delta) {
            last = numbers[i++];
            ++run;
        }
        if (!out.empty()) out += ' ';
        const bool falls = delta > UINT64_MAX / 2;
        out += fmt::format("{}{:x}", falls ? "-" : "", falls ? 0 - delta : delta);
        if (run > 1) out += fmt::format("*{:x}", run);
    }
    return out;
}

std::string page_data(const fabric& f, const job* j, const std::string& title) {
    const auto s = make_scene(f);
    rate_table rates(s);
    json out{{"title", clean(title)},       {"hosts", hosts_of(f)},      {"groups", groups_of(f)},
             {"switches", switches_of(f)},  {"hcas", hcas_of(f, rates)}, {"links", links_of(f, rates)},
             {"defects", defects_of(f, s)}, {"all_defects", faults(s)},  {"job", job_data(j)}};
    out["rates"] = rates.list();
    out["job_colors"] = job_colors;
    out["untold"] = {{"cables", f.untold.cables}, {"guids", f.untold.guids}};
    out["cores"] = packed_indices(s.cores);
    out["stray"] = packed_indices(s.stray);
    out["spine_groups"] = json::array();
    for (const auto& p : s.spine_groups)
        out["spine_groups"].push_back(
            {{"spines", packed_indices(p.spines)}, {"groups", packed_indices(p.groups)}});
    out["odd"] = json::array();
    for (const auto& b : s.bundles)
        if (b.state != health::good) out["odd"].push_back({b.low, b.high, b.count, b.usual, b.state});
    return escape_script(out.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace banyan::topo::draw
