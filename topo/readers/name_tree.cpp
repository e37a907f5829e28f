// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/name_tree.hpp"

#include <algorithm>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/name_ids.hpp"
#include "topo/readers/records.hpp"
#include "topo/readers/slurm_conf.hpp"

namespace banyan::topo {
namespace {

/// Of one file, in all lists together: more than any Slurm has.
constexpr std::size_t most_names = std::size_t{1} << 20;

bool is_one_word(std::string_view name) {
    return !name.empty() && name.size() <= max_host_name &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

std::string from_to(const std::string& first, const std::string& last) {
    return first == last ? first : fmt::format("{}..{}", first, last);
}

/// Nodes of a dump by their names, each with its links up: the upper end has port 0, since nobody knows which
/// it is.
class dump_filler {
  public:
    explicit dump_filler(dump& out) : out_(out) {}

    /// Its index. The ports that follow are its own.
    std::uint32_t add(node_kind kind, std::string_view name, std::uint32_t line) {
        dump_node n;
        n.kind = kind;
        n.name = names_.keep(std::string(name));
        n.id = ids_.make(kind, n.name);
        n.line = line;
        out_.nodes.push_back(n);
        const auto index = static_cast<std::uint32_t>(out_.nodes.size() - 1);
        begin_ports(index);
        return index;
    }
    void begin_ports(std::uint32_t node) {
        out_.nodes[node].first_port = static_cast<std::uint32_t>(out_.ports.size());
    }
    void link_up(std::uint32_t node, std::uint32_t parent) {
        auto& n = out_.nodes[node];
        dump_port p;
        p.port = static_cast<std::uint16_t>(std::min<std::uint32_t>(++n.port_count, UINT16_MAX));
        p.peer = out_.nodes[parent].id;
        p.peer_name = out_.nodes[parent].name;
        out_.ports.push_back(p);
    }
    auto names() const { return names_.all(); }

  private:
    dump& out_;
    name_store names_;
    name_ids ids_;
};

}  // namespace

std::vector<std::string> name_tree::expand(std::uint32_t line, std::string_view name, std::string_view list) {
    if (trim(list).empty()) return {};
    auto out = expand_slurm_hostlist(list);
    if (!out) {
        complain(out_, line, 1, fmt::format("{}: {}; its list is skipped", name, out.error().what));
        return {};
    }
    names_ += out->size();
    if (names_ <= most_names) return std::move(*out);
    complain(out_, line, 1, fmt::format("{}: more than {} names in this file; skipped", name, most_names));
    return {};
}

void name_tree::add(std::uint32_t line, std::string_view name, std::string_view nodes,
                    std::string_view below) {
    add(line, name, expand(line, name, nodes), expand(line, name, below));
}

void name_tree::add(std::uint32_t line, std::string_view name, std::vector<std::string> nodes,
                    std::vector<std::string> below) {
    if (!is_one_word(name))
        return complain(out_, line, 1, "a switch or block without a name of one word; it is skipped");
    entries_.push_back({std::string(name), line, std::move(nodes), std::move(below), {}, false});
}

void name_tree::join(std::vector<std::string> below, std::string_view name) {
    if (!below.empty()) entries_.push_back({std::string(name), 0, {}, std::move(below), {}, false});
}

void name_tree::join_in_order(const std::vector<std::size_t>& spans) {
    std::erase_if(entries_, [](const entry& e) { return e.nodes.empty(); });
    std::size_t first = 0, last = entries_.size(), level = 0;
    auto ends = std::vector<std::pair<std::string, std::string>>();
    for (const auto& e : entries_) ends.emplace_back(e.name, e.name);
    // Above all stands one, whatever the spans.
    for (std::size_t next = 0; last - first > 1; ++next, first = last, last = entries_.size()) {
        const auto count = last - first;
        const auto span = next < spans.size() ? std::clamp<std::size_t>(spans[next], 2, count) : count;
        ++level;
        for (auto at = first; at < last; at += span) {
            const auto stop = std::min(at + span, last);
            entry e;
            const auto upper = static_cast<std::uint32_t>(entries_.size());
            for (auto i = at; i < stop; ++i) entries_[i].parents.push_back(upper);
            e.line = entries_[at].line;
            ends.emplace_back(ends[at].first, ends[stop - 1].second);
            // A blank: no block is called so.
            e.name = fmt::format("blocks {} level {}", from_to(ends.back().first, ends.back().second), level);
            entries_.push_back(std::move(e));
        }
    }
}

void name_tree::find_parents() {
    boost::unordered_flat_map<std::string_view, std::uint32_t> known;
    known.reserve(entries_.size());
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const auto [at, fresh] = known.try_emplace(entries_[i].name, i);
        if (fresh) continue;
        complain(out_, entries_[i].line, 1,
                 fmt::format("{} stands in line {} already; this one is skipped", entries_[i].name,
                             entries_[at->second].line));
        entries_[i].nodes.clear();
        entries_[i].below.clear();
    }
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        for (const auto& name : entries_[i].below) {
            const auto at = known.find(name);
            if (at == known.end())
                complain(
                    out_, entries_[i].line, 1,
                    fmt::format("{} has {} below it, and no line says what that is", entries_[i].name, name));
            else if (at->second != i)
                entries_[at->second].parents.push_back(i);
        }
}

void name_tree::find_used() {
    std::vector<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        if (!entries_[i].nodes.empty()) entries_[i].used = true, queue.push_back(i);
    for (std::size_t at = 0; at < queue.size(); ++at)
        for (const auto p : entries_[queue[at]].parents)
            if (!entries_[p].used) entries_[p].used = true, queue.push_back(p);
}

std::vector<std::uint32_t> name_tree::parents_of(std::uint32_t i) const {
    auto out = entries_[i].parents;
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

result<void> name_tree::finish() {
    find_parents();
    find_used();
    dump_filler to(out_);
    std::vector<std::uint32_t> node_of(entries_.size(), none);
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        if (entries_[i].used) node_of[i] = to.add(node_kind::switch_node, entries_[i].name, entries_[i].line);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        if (node_of[i] == none) continue;
        to.begin_ports(node_of[i]);
        for (const auto p : parents_of(i)) to.link_up(node_of[i], node_of[p]);
    }
    boost::unordered_flat_map<std::string_view, std::vector<std::uint32_t>> leaves_of;
    std::vector<std::string_view> hosts;
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        for (const auto& name : entries_[i].nodes) {
            auto& leaves = leaves_of[name];
            if (leaves.empty()) hosts.push_back(name);
            if (leaves.empty() || leaves.back() != i) leaves.push_back(i);
        }
    for (const auto name : hosts) {
        const auto& leaves = leaves_of[name];
        const auto node = to.add(node_kind::hca, name, entries_[leaves[0]].line);
        for (const auto leaf : leaves) to.link_up(node, node_of[leaf]);
    }
    out_.names = to.names();
    out_.plain_names = true;
    out_.untold = {.cables = true, .rails = true, .devices = true, .rates = true, .guids = true};
    if (!hosts.empty()) return {};
    return fail(errc::invalid_input, "no node stands below any switch or block of this file",
                out_.complaints.empty()
                    ? "give a file whose leaves or blocks have nodes"
                    : fmt::format("line {}: {}", out_.complaints[0].line, out_.complaints[0].what));
}

}  // namespace banyan::topo
