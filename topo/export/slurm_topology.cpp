// SPDX-License-Identifier: BSD-3-Clause
//
// Which node stands under which leaf, and which leaves stand together.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topo/export/slurm.hpp"
#include "topo/export/slurm_blocks.hpp"
#include "topo/export/slurm_names.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo {
namespace {

class topology_builder {
  public:
    topology_builder(const fabric& f, const slurm_export& options) : f_(f), options_(options) {}

    result<slurm_topology> build() {
        for (std::uint32_t h = 0; h < f_.hosts.size(); ++h) add_host(h);
        note_left_out();
        if (by_place_.empty()) return nobody();
        make_leaves();
        if (options_.plugin == slurm_plugin::tree) {
            make_tree();
        } else {
            BANYAN_CHECK(choose_block_sizes(out_, options_.block_sizes));
        }
        return std::move(out_);
    }

  private:
    /// Island, spine group and position of a leaf or block; leaves are written in this order.
    struct place {
        std::uint32_t island = 0, spine_group = 0, order = 0;
        auto operator<=>(const place&) const = default;
    };

    bool by_domain() const {
        return options_.plugin == slurm_plugin::block && options_.blocks == slurm_blocks::nvlink_domain;
    }

    /// Slurm's name of the host; empty where it is no node of Slurm.
    std::string node_of(const host& h) const {
        if (!options_.nodes) return h.name;
        const auto& names = options_.nodes->names;
        if (std::binary_search(names.begin(), names.end(), h.name)) return h.name;
        const auto at = options_.nodes->by_hostname.find(h.name);
        return at == options_.nodes->by_hostname.end() ? std::string() : at->second;
    }

    void add_host(std::uint32_t index) {
        const auto& h = f_.hosts[index];
        const auto node = node_of(h);
        if (node.empty()) return foreign_.push_back(h.name);
        if (!is_slurm_name(node)) return unnameable_.push_back(node);
        const bool grouped = h.leaf_group < f_.leaf_groups.size();
        if (by_domain() ? h.nvlink_domain.empty() : !grouped) return ungrouped_.push_back(node);
        if (!seated_.insert(node).second) return doubled_.push_back(node);
        place at;
        if (grouped) {
            const auto& group = f_.leaf_groups[h.leaf_group];
            at = {group.island, group.spine_group, h.leaf_group};
        }
        if (by_domain()) at = domains_.try_emplace(h.nvlink_domain, at).first->second;
        by_place_[at][by_domain() ? h.nvlink_domain : std::string()].push_back(node);
    }

    void note(const std::string& what, const std::vector<std::string>& names) {
        if (names.empty()) return;
        out_.left_out += static_cast<std::uint32_t>(names.size());
        out_.notes.push_back(fmt::format("{}: {}", what, comment_text(sorted_hostlist(names))));
    }

    void note_left_out() {
        note(by_domain() ? "Left out, since they have no NVLink domain"
                         : "Left out, since they belong to no leaf group",
             ungrouped_);
        note("Left out, since Slurm takes no such names", unnameable_);
        note("Left out, since two hosts claim the name", doubled_);
        note("On the fabric, but no node of this Slurm", foreign_);
        if (options_.nodes) {
            std::set<std::string> mentioned(unnameable_.begin(), unnameable_.end());
            mentioned.insert(ungrouped_.begin(), ungrouped_.end());
            mentioned.insert(doubled_.begin(), doubled_.end());
            std::vector<std::string> absent;
            for (const auto& name : options_.nodes->names)
                if (!seated_.contains(name) && !mentioned.contains(name)) absent.push_back(name);
            note("Nodes of this Slurm that are no compute host of the fabric", absent);
            if (options_.nodes->includes)
                out_.notes.push_back("The Include lines of slurm.conf were not followed.");
        }
        note_services();
    }

    /// What the fabric's model has set aside: these hosts compute nothing, so they do not count as left out.
    void note_services() {
        std::map<std::string, std::vector<std::string>> by_kind;
        for (const auto& e : f_.excluded) {
            if (e.kind == "sharp" || e.kind == "router") continue;
            auto name = e.kind == "unattributed" ? fmt::format("0x{:016x}", e.id)
                                                 : e.name.substr(0, e.name.find(' '));
            if (find_host(f_, name) == none) by_kind[e.kind].push_back(std::move(name));
        }
        for (const auto& [kind, names] : by_kind)
            out_.notes.push_back(
                fmt::format("No compute hosts ({}): {}", kind, comment_text(sorted_hostlist(names))));
    }

    std::unexpected<error> nobody() const {
        if (by_domain() && !f_.hosts.empty())
            return fail(errc::invalid_input, "no host of the fabric has an NVLink domain",
                        "give --site FILE with [[nvlink_domain]], or --blocks leaf-group");
        if (options_.nodes)
            return fail(errc::invalid_input,
                        fmt::format("none of the {} nodes of this Slurm is on the fabric, which has {}",
                                    options_.nodes->names.size(),
                                    foreign_.empty() ? "no host" : comment_text(foreign_.front())),
                        "compare the names with those that banyan-topo show prints");
        return fail(errc::invalid_input, "the fabric has no host with a leaf group",
                    "banyan-topo check says why");
    }

    void make_leaves() {
        slurm_namer name;
        for (auto& [at, parts] : by_place_)
            for (auto& [domain, nodes] : parts) {
                slurm_leaf leaf;
                const auto* group = at.order < f_.leaf_groups.size() ? &f_.leaf_groups[at.order] : nullptr;
                leaf.name = name(domain.empty() && group ? group->id : domain);
                leaf.about =
                    domain.empty() && group ? about(*group) : "NVLink domain " + comment_text(domain);
                std::sort(nodes.begin(), nodes.end(), by_number);
                leaf.nodes = std::move(nodes);
                leaf.spine_group = at.spine_group;
                leaf.island = at.island;
                out_.leaves.push_back(std::move(leaf));
            }
    }

    std::string about(const leaf_group& group) const {
        std::vector<std::string> names;
        for (const auto leaf : group.leaves)
            if (leaf < f_.switches.size()) names.push_back(short_switch_name(f_.switches[leaf].name));
        if (f_.untold.rails) return comment_text(sorted_hostlist(names));
        return fmt::format("{} rail{}: {}", names.size(), names.size() == 1 ? "" : "s",
                           comment_text(sorted_hostlist(names)));
    }

    /// An island of one leaf is that leaf; of one spine group, its spine; else a core over the spines.
    void make_tree() {
        slurm_namer name;
        for (const auto& leaf : out_.leaves) name(leaf.name);
        std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::string>>> islands;
        for (const auto& leaf : out_.leaves) islands[leaf.island][leaf.spine_group].push_back(leaf.name);
        std::uint32_t spines = 0, cores = 0;
        for (const auto& [island, groups] : islands) {
            if (groups.size() == 1 && groups.begin()->second.size() == 1) {
                out_.roots.push_back(groups.begin()->second.front());
                continue;
            }
            std::vector<std::string> tops;
            for (const auto& [group, leaves] : groups) {
                out_.switches.push_back({name(fmt::format("spine{}", ++spines)), leaves});
                tops.push_back(out_.switches.back().name);
            }
            if (tops.size() > 1) out_.switches.push_back({name(fmt::format("core{}", ++cores)), tops});
            out_.roots.push_back(out_.switches.back().name);
        }
        if (out_.roots.size() > 1)
            out_.notes.push_back(
                fmt::format("{} fabrics that no link joins: no job spans two of them.", out_.roots.size()));
    }

    const fabric& f_;
    const slurm_export& options_;
    slurm_topology out_;
    std::map<place, std::map<std::string, std::vector<std::string>>> by_place_;
    std::map<std::string, place> domains_;  ///< where the first host of each NVLink domain is
    std::set<std::string> seated_;
    std::vector<std::string> foreign_, unnameable_, ungrouped_, doubled_;
};

}  // namespace

result<slurm_topology> slurm_topology_of(const fabric& f, const slurm_export& options) {
    return topology_builder(f, options).build();
}

}  // namespace banyan::topo
