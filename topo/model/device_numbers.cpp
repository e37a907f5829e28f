// SPDX-License-Identifier: BSD-3-Clause
//
// Names of one naming ("mlx5_3", "ibp3s0") are compared by number; names of two never are, but by the order
// of the host's devices.
//
// Hosts of one fabric may number the same HCAs from 0, from 2, or by PCI slots. The order is the same: so a
// host that numbers otherwise than most gets their numbers, and can be compared with them.
#include <algorithm>
#include <map>
#include <set>

#include "topo/model/hosts.hpp"

namespace banyan::topo::build {
namespace {

using numbers = std::vector<std::uint32_t>;  ///< of one host, ascending

/// A number has its naming above these bits; that of most HCAs is 0, so that their numbers are those of their
/// names.
constexpr unsigned number_bits = 24;
std::uint32_t naming_of(std::uint32_t number) { return number >> number_bits; }

/// What names tell by where a device sits is counted over the whole fabric: 3, 13, 23 are 0, 1, 2.
std::vector<std::uint64_t> slots_of(const std::vector<hca_name>& names) {
    std::vector<std::uint64_t> out;
    for (const auto& n : names)
        if (n.naming == hca_name::by_slot) out.push_back(n.device);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

/// By naming a number: 0 for that of most HCAs, then by name.
std::map<std::string_view, std::uint32_t> number_namings(const std::vector<hca_name>& names) {
    std::map<std::string_view, std::size_t> counts;
    for (const auto& n : names)
        if (n.device != hca_name::no_device) ++counts[n.naming];
    const auto most =
        std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; });
    std::map<std::string_view, std::uint32_t> out;
    std::uint32_t next = 1;
    for (const auto& [naming, n] : counts) out[naming] = naming == most->first ? 0 : next++;
    return out;
}

numbers numbers_of(const state& s, const std::vector<std::uint32_t>& hcas) {
    numbers out;
    for (const auto i : hcas) {
        if (s.device_of_hca[i] == none) return {};
        out.push_back(s.device_of_hca[i]);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

class numberings {
  public:
    explicit numberings(std::map<numbers, std::size_t> counts) : counts_(std::move(counts)) {
        // In a list of two namings nobody knows the order, so one of a single naming is worth more.
        const auto worth = [](const auto& each) {
            return naming_of(each.first.front()) == naming_of(each.first.back()) ? 2 * each.second
                                                                                 : each.second;
        };
        for (const auto& each : counts_) {
            auto& best = usual_[each.first.size()];
            if (each.second >= 3 && (!best || worth(each) > worth(*best))) best = &each;
        }
        std::erase_if(usual_, [](const auto& each) { return each.second == nullptr; });
        // What lacks one of a longer list is no numbering of its own.
        std::erase_if(usual_, [&](const auto& each) {
            return std::any_of(counts_.begin(), counts_.end(), [&](const auto& other) {
                return other.second >= 2 && other.first.size() > each.first &&
                       includes(other.first, each.second->first);
            });
        });
    }

    /// Old number -> the one that most hosts of so many HCAs have in its place; empty where nothing is to do.
    std::map<std::uint32_t, std::uint32_t> changes(const numbers& mine) const {
        for (const auto& [size, best] : usual_)
            if (includes(best->first, mine)) return {};
        const numbers* whole = nullptr;
        std::pair<std::size_t, std::size_t> most;
        for (const auto& [list, n] : counts_)
            if (std::pair(list.size(), n) > most && usual_.contains(list.size()) && includes(list, mine))
                whole = &list, most = {list.size(), n};
        return whole ? in_order(*whole, usual_.at(whole->size())->first)
                     : std::map<std::uint32_t, std::uint32_t>();
    }

  private:
    /// The names of one naming take, in their order, the numbers of `theirs` that those of the others leave.
    static std::map<std::uint32_t, std::uint32_t> in_order(const numbers& mine, const numbers& theirs) {
        std::set<std::uint32_t> namings;
        for (const auto n : mine) namings.insert(naming_of(n));
        for (const auto naming : namings) {
            numbers moved, kept, open;
            for (const auto n : mine) (naming_of(n) == naming ? moved : kept).push_back(n);
            if (!includes(theirs, kept)) continue;
            std::set_difference(theirs.begin(), theirs.end(), kept.begin(), kept.end(),
                                std::back_inserter(open));
            // Of two namings nobody knows which comes first, but what has the same name is the same.
            if (naming_of(open.front()) != naming_of(open.back())) {
                numbers same;
                std::set_intersection(moved.begin(), moved.end(), open.begin(), open.end(),
                                      std::back_inserter(same));
                std::erase_if(moved, [&](auto n) { return includes(same, {n}); });
                std::erase_if(open, [&](auto n) { return includes(same, {n}); });
                kept.insert(kept.end(), same.begin(), same.end());
                if (open.empty() || naming_of(open.front()) != naming_of(open.back())) continue;
            }
            std::map<std::uint32_t, std::uint32_t> out;
            for (const auto n : kept) out[n] = n;
            for (std::size_t i = 0; i < moved.size(); ++i) out[moved[i]] = open[i];
            return out;
        }
        return {};
    }
    static bool includes(const numbers& all, const numbers& some) {
        return std::includes(all.begin(), all.end(), some.begin(), some.end());
    }
    std::map<numbers, std::size_t> counts_;  ///< hosts that have just these
    std::map<std::size_t, const std::pair<const numbers, std::size_t>*> usual_;  ///< by how many
};

}  // namespace

void number_devices(state& s) {
    const auto& names = s.hca_names;
    const auto slots = slots_of(names);
    const auto namings = number_namings(names);
    constexpr std::uint32_t most_namings = 1u << 7;
    s.device_of_hca.assign(names.size(), none);
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto number = names[i].device;
        if (number == hca_name::no_device) continue;
        if (names[i].naming == hca_name::by_slot)
            number = static_cast<std::uint64_t>(std::lower_bound(slots.begin(), slots.end(), number) -
                                                slots.begin());
        const auto naming = namings.at(names[i].naming);
        if (number >> number_bits != 0 || naming >= most_namings) continue;
        s.device_of_hca[i] = naming << number_bits | static_cast<std::uint32_t>(number);
    }
}

void agree_on_numbers(state& s, const host_list& hosts) {
    std::map<numbers, std::size_t> counts;
    std::vector<numbers> by_host;
    for (const auto& hcas : hosts.hcas) {
        by_host.push_back(numbers_of(s, hcas));
        if (!by_host.back().empty()) ++counts[by_host.back()];
    }
    // A sound fabric has a handful; a dump that has thousands has no numbering.
    constexpr std::size_t most_lists = 1000;
    if (counts.size() < 2 || counts.size() > most_lists) return;
    const numberings all(counts);
    std::map<numbers, std::map<std::uint32_t, std::uint32_t>> known;
    for (std::size_t h = 0; h < by_host.size(); ++h) {
        if (by_host[h].empty()) continue;
        const auto [at, fresh] = known.try_emplace(by_host[h]);
        if (fresh) at->second = all.changes(by_host[h]);
        if (at->second.empty()) continue;
        for (const auto i : hosts.hcas[h]) s.device_of_hca[i] = at->second.at(s.device_of_hca[i]);
    }
}

}  // namespace banyan::topo::build
