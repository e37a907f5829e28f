// SPDX-License-Identifier: BSD-3-Clause
//
// Hands the cases to placement_quality_slurm.py, which asks real slurmctlds, and reads what they answered.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/text.hpp"
#include "test/bench/placement_quality.hpp"
#include "test/built.hpp"

namespace banyan::topo::quality {
namespace {

using nlohmann::json;

std::string names_of(const fabric& f, const hosts& which) {
    std::vector<std::string> names;
    for (const auto h : which) names.push_back(f.hosts[h].name);
    return compress_hostlist(names);
}

json requests_for(const std::vector<site>& sites, const std::vector<test_case>& cases) {
    json out{{"sites", json::array()}, {"cases", json::array()}};
    for (const auto& s : sites) {
        json groups = json::array();
        for (const auto& g : s.net.leaf_groups)
            groups.push_back({{"nodes", names_of(s.net, g.hosts)}, {"spine_group", g.spine_group}});
        hosts all(s.net.hosts.size());
        for (std::uint32_t h = 0; h < all.size(); ++h) all[h] = h;
        out["sites"].push_back(
            {{"all", names_of(s.net, all)}, {"group_size", s.group_size}, {"groups", std::move(groups)}});
    }
    for (const auto& c : cases) {
        hosts busy;
        for (std::uint32_t h = 0; h < sites[c.site].net.hosts.size(); ++h)
            if (!std::binary_search(c.free.begin(), c.free.end(), h)) busy.push_back(h);
        out["cases"].push_back({{"site", c.site},
                                {"busy", names_of(sites[c.site].net, busy)},
                                {"nodes", c.job.nodes},
                                {"segment", c.job.dims.size(dimension::pp)}});
    }
    return out;
}

/// Not an answer unless it is as many free hosts as were asked for.
std::optional<hosts> read_nodes(const json& from, const site& s, const test_case& c) {
    if (!from.is_string()) return std::nullopt;
    const auto names = expand_hostlist(from.get_ref<const std::string&>());
    if (!names || names->size() != c.job.nodes) return std::nullopt;
    hosts out;
    for (const auto& name : *names) out.push_back(find_host(s.net, name));
    std::sort(out.begin(), out.end());
    if (!std::includes(c.free.begin(), c.free.end(), out.begin(), out.end())) return std::nullopt;
    return out;
}

}  // namespace

slurm_answers ask_slurm(const std::vector<site>& sites, const std::vector<test_case>& cases) {
    slurm_answers out;
    out.tree.resize(cases.size());
    out.block.resize(cases.size());
    const auto base =
        (std::filesystem::temp_directory_path() / fmt::format("quality_bench.{}", getpid())).string();
    std::ofstream(base + ".ask") << requests_for(sites, cases).dump();
    const auto program = banyan::testing::source("test/bench/placement_quality_slurm.py");
    const auto status = std::system(fmt::format("python3 {} {}.ask {}.answer", program, base, base).c_str());
    std::ifstream in(base + ".answer");
    const auto answer = json::parse(in, nullptr, false);
    std::filesystem::remove(base + ".ask");
    std::filesystem::remove(base + ".answer");
    if (status != 0 || !answer.is_object()) {
        out.why_no_tree = out.why_no_block = fmt::format("{} failed", program);
        return out;
    }
    out.tree_by = answer["tree"].value("by", "");
    out.block_by = answer["block"].value("by", "");
    out.why_no_tree = answer["tree"].value("why", "");
    out.why_no_block = answer["block"].value("why", "");
    const auto read = [&](const json& lists, std::vector<std::optional<hosts>>& into) {
        for (std::size_t i = 0; i < cases.size() && i < lists.size(); ++i)
            into[i] = read_nodes(lists[i], sites[cases[i].site], cases[i]);
    };
    read(answer["tree"]["nodes"], out.tree);
    read(answer["block"]["nodes"], out.block);
    return out;
}

}  // namespace banyan::topo::quality
