// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts of one fabric may number the same HCAs from 0, from 2, or by PCI slots. The order is the same: so a
// host that numbers otherwise than most gets their numbers, and can be compared with them.
#include <algorithm>
#include <map>

#include "topo/model/hosts.hpp"

namespace banyan::topo::build {
namespace {

using numbers = std::vector<std::uint32_t>;  ///< of one host, ascending

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
        for (const auto& [list, n] : counts_) {
            auto& best = usual_[list.size()];
            if (n >= 3 && (!best || n > best->second)) best = &*counts_.find(list);
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
        std::map<std::uint32_t, std::uint32_t> out;
        for (std::size_t i = 0; whole && i < whole->size(); ++i)
            out[(*whole)[i]] = usual_.at(whole->size())->first[i];
        return out;
    }

  private:
    static bool includes(const numbers& all, const numbers& some) {
        return std::includes(all.begin(), all.end(), some.begin(), some.end());
    }
    std::map<numbers, std::size_t> counts_;  ///< hosts that have just these
    std::map<std::size_t, const std::pair<const numbers, std::size_t>*> usual_;  ///< by how many
};

}  // namespace

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
