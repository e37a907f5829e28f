// SPDX-License-Identifier: BSD-3-Clause
//
// Where each HCA should be: on its rail's leaf of its host's group, at the port where its host sits on the
// other leaves. What is elsewhere is swapped with another, on a foreign leaf, or on a wrong rail.
#include <algorithm>
#include <map>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

struct attachment {
    std::uint32_t leaf = none;
    std::uint16_t port = 0;
    bool operator==(const attachment&) const = default;
};

std::uint64_t key(const attachment& s) { return std::uint64_t{s.leaf} << 16 | s.port; }

class attachments {
  public:
    explicit attachments(const state& s) : s_(s), f_(s.out) {
        find_devices();
        for (std::uint32_t h = 0; h < f_.hosts.size(); ++h) {
            std::vector<std::uint16_t> ports;
            for (const auto i : f_.hosts[h].hcas)
                if (f_.hcas[i].leaf != none) ports.push_back(f_.hcas[i].leaf_port);
            port_of_host_.push_back(usual(ports).value);
        }
        otherwise_numbered_.resize(f_.hosts.size());
        for (std::uint32_t h = 0; h < f_.hosts.size(); ++h) otherwise_numbered_[h] = other_numbers(h);
        for (std::uint32_t i = 0; i < f_.hcas.size(); ++i)
            if (f_.hcas[i].host != none && f_.hcas[i].leaf != none) taken_[key(actual(i))] = i;
    }

    attachment actual(std::uint32_t i) const { return {f_.hcas[i].leaf, f_.hcas[i].leaf_port}; }

    attachment expected(std::uint32_t i) const {
        const auto& hca = f_.hcas[i];
        const auto group = f_.hosts[hca.host].leaf_group;
        attachment out = actual(i);
        if (const auto at = leaf_of_device_.find({group, s_.device_of_hca[i]});
            at != leaf_of_device_.end() && !otherwise_numbered_[hca.host])
            out.leaf = at->second;
        if (f_.leaf_groups[group].alignment >= least_agreement) out.port = port_of_host_[hca.host];
        return out;
    }

    std::uint32_t at(const attachment& where) const {
        const auto found = taken_.find(key(where));
        return found == taken_.end() ? none : found->second;
    }

  private:
    /// A host whose numbers are not its neighbours', but whose order is theirs, has no cable crossed.
    bool other_numbers(std::uint32_t host) const {
        const auto group = f_.hosts[host].leaf_group;
        std::vector<std::pair<std::uint32_t, std::uint16_t>> rails;  // by device
        std::size_t right = 0;
        for (const auto i : f_.hosts[host].hcas) {
            const auto device = s_.device_of_hca[i];
            if (f_.hcas[i].leaf == none || device == none) continue;
            rails.emplace_back(device, f_.hcas[i].rail);
            const auto at = leaf_of_device_.find({group, device});
            right += at != leaf_of_device_.end() && at->second == f_.hcas[i].leaf;
        }
        if (rails.size() < 2 || 2 * right >= rails.size()) return false;
        std::sort(rails.begin(), rails.end());
        for (std::size_t i = 1; i < rails.size(); ++i)
            if (rails[i].second <= rails[i - 1].second) return false;
        return true;
    }

    /// (group, device) -> leaf, for each leaf on which most HCAs have that device.
    void find_devices() {
        std::vector<std::vector<std::uint32_t>> devices(f_.switches.size());
        for (std::uint32_t g = 0; g < f_.leaf_groups.size(); ++g) {
            for (const auto h : f_.leaf_groups[g].hosts)
                for (const auto i : f_.hosts[h].hcas)
                    if (f_.hcas[i].leaf != none && s_.device_of_hca[i] != none)
                        devices[f_.hcas[i].leaf].push_back(s_.device_of_hca[i]);
            // Where most leaves show their number clearly, more than half is enough for one with many
            // crossed.
            std::vector<usual_value<std::uint32_t>> usual_of;
            std::size_t clear = 0;
            for (const auto leaf : f_.leaf_groups[g].leaves) {
                usual_of.push_back(usual(std::move(devices[leaf])));
                clear += usual_of.back().of >= 3 && usual_of.back().share() >= least_agreement;
            }
            const double enough = 2 * clear > usual_of.size() ? 0.55 : least_agreement;
            for (std::size_t at = 0; at < usual_of.size(); ++at) {
                const auto leaf = f_.leaf_groups[g].leaves[at];
                const auto& most = usual_of[at];
                if (most.of < 3 || most.share() < enough) continue;
                const auto [entry, fresh] = leaf_of_device_.try_emplace({g, most.value}, leaf);
                if (!fresh) entry->second = none;  // two leaves for one device: the names are no rail order
            }
        }
        std::erase_if(leaf_of_device_, [](const auto& entry) { return entry.second == none; });
    }

    const state& s_;
    const fabric& f_;
    std::vector<std::uint16_t> port_of_host_;
    std::vector<bool> otherwise_numbered_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> leaf_of_device_;
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> taken_;  ///< by key(attachment)
};

/// The HCA, and where it is.
std::string leaf_port_id(const fabric& f, const hca& h) {
    return fmt::format("{} on {}", hex(h.id), port_id(f.switches[h.leaf].id, h.leaf_port));
}

/// Its name, or its GUID and whose it is taken for.
std::string hca_label(const state& s, std::uint32_t i) {
    const auto& h = s.out.hcas[i];
    if (!s.host_name_of_hca[i].empty()) return h.name;
    return fmt::format("{} (taken for {})", hex(h.id), s.out.hosts[h.host].name);
}

/// Of a defect of these HCAs: no surer than whose each is.
double sure(const state& s, double most, std::initializer_list<std::uint32_t> hcas) {
    for (const auto i : hcas)
        if (s.told_by_guid[i] > 0) most = std::min(most, static_cast<double>(s.told_by_guid[i]));
    return most;
}

void misplaced(state& s, std::uint32_t i, const attachments& all) {
    const auto& f = s.out;
    const auto& hca = f.hcas[i];
    const auto& host = f.hosts[hca.host];
    const auto should = all.expected(i);
    if (should == all.actual(i)) return;
    const auto other = all.at(should);
    if (other != none && other != i && all.expected(other) == all.actual(i)) {
        if (i < other)
            s.report("swapped-cables", {hca_label(s, i), hca_label(s, other)},
                     fmt::format("{} port {} and {} port {}: each is where the other should be{}",
                                 label(s, hca.leaf), hca.leaf_port, label(s, f.hcas[other].leaf),
                                 f.hcas[other].leaf_port,
                                 sure(s, 1, {i, other}) < 1 ? ", going by the GUIDs" : ""),
                     sure(s, 0.95, {i, other}), {leaf_port_id(f, hca), leaf_port_id(f, f.hcas[other])});
        return;
    }
    // What stands between two GUIDs alone shows a pair, nothing less.
    if (s.told_by_guid[i] > 0 && s.told_by_guid[i] < 0.8f) return;
    const auto& leaves = f.leaf_groups[host.leaf_group].leaves;
    if (std::find(leaves.begin(), leaves.end(), hca.leaf) == leaves.end())
        s.report("foreign-leaf", {hca_label(s, i)},
                 fmt::format("on {}, which serves another leaf group than {} of {}", label(s, hca.leaf),
                             f.leaf_groups[host.leaf_group].id, host.name),
                 sure(s, host.confidence, {i}), {leaf_port_id(f, hca)});
    else if (should.leaf != hca.leaf)
        s.report(
            "wrong-rail", {hca_label(s, i)},
            fmt::format("on {}; HCAs of this number are on {}", label(s, hca.leaf), label(s, should.leaf)),
            sure(s, 0.9, {i}), {leaf_port_id(f, hca)});
}

void find_misplaced(state& s) {
    const attachments all(s);
    for (std::uint32_t i = 0; i < s.out.hcas.size(); ++i) {
        const auto& hca = s.out.hcas[i];
        if (hca.host == none || hca.leaf == none || s.out.hosts[hca.host].leaf_group == none) continue;
        // Where its host's place is does not say where it should be: it may be another host's.
        if (s.doubtful_host[i]) continue;
        misplaced(s, i, all);
    }
}

}  // namespace

void find_host_defects(state& s) {
    find_missing_rails(s);
    find_misplaced(s);
    find_doubled_leaves(s);
}

}  // namespace banyan::topo::build
