// SPDX-License-Identifier: BSD-3-Clause
//
// Topology and bandwidth.
#include <cstdlib>
#include <functional>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "common/file.hpp"
#include "scratch_folder.hpp"
#include "sweep/apart.hpp"
#include "sweep/bandwidth.hpp"
#include "sweep/topology.hpp"
#include "test/built.hpp"

namespace test_machine {

using namespace banyan;
using namespace banyan::sweep;

namespace {

const machine_parts baseline{{"CPU 0", {}},
                             {"CPU 1", {}},
                             {"NUMA node 0", {"", 1000u << 20}},
                             {"PCI 0000:1b:00.0", {"10de:2330, class 0302", 0}}};

std::string shipped_node() {
    return read_file(banyan::testing::fixture("export/hwloc-2p8g8h.xml"), 1u << 20).value();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("what the baseline node has and this one lacks is named", "[sweep]") {
    CHECK(judge_topology(baseline, baseline).is == verdict::fit);
    auto here = baseline;
    here.erase("CPU 1");
    here["PCI 0000:1b:00.0"].is = "10de:20b0, class 0302";
    here["NUMA node 0"].bytes = 900u << 20;
    const auto found = judge_topology(baseline, here);
    CHECK(found.is == verdict::unfit);
    CHECK(found.what == std::vector<std::string>{
                            "CPU 1 is missing", "NUMA node 0 is 900.0 MiB, expected 1000.0 MiB",
                            "PCI 0000:1b:00.0 is 10de:20b0, class 0302, expected 10de:2330, class 0302"});
    CHECK(found.figures.at("topology_differences") == 3);
}

TEST_CASE("a little memory more or less is no difference, and more objects are told", "[sweep]") {
    auto here = baseline;
    for (const auto mib : {980u, 1000u, 1020u}) {
        here["NUMA node 0"].bytes = std::uint64_t{mib} << 20;
        CHECK(judge_topology(baseline, here).is == verdict::fit);
    }
    for (const auto mib : {0u, 979u, 1021u}) {
        here["NUMA node 0"].bytes = std::uint64_t{mib} << 20;
        CHECK(judge_topology(baseline, here).is == verdict::unfit);
    }
    here = baseline;
    here["HCA mlx5_9"];
    const auto found = judge_topology(baseline, here);
    CHECK(found.is == verdict::fit);
    CHECK(found.what.back() == "1 object is here, which the baseline node does not have: HCA mlx5_9");
}

TEST_CASE("a thousand differences are told in a few lines", "[sweep]") {
    machine_parts many;
    for (int i = 0; i < 1000; ++i) many[fmt::format("CPU {}", i)];
    const auto found = judge_topology(many, {});
    CHECK(found.what.size() == 17);
    CHECK(found.what.back() == "and 984 more differences");
}

TEST_CASE("GPUs, HCAs, CPUs and memory of a node are found in its XML", "[sweep]") {
    const auto parts = read_topology(shipped_node(), "a.xml");
    REQUIRE(parts);
    std::map<std::string, int> kinds;
    for (const auto& [name, part] : *parts) ++kinds[name.substr(0, name.find(' '))];
    CHECK(kinds["package"] == 2);
    CHECK(kinds["HCA"] == 9);
    CHECK(kinds["NUMA"] > 0);
    CHECK(kinds["CPU"] > 0);
    CHECK(kinds["PCI"] >= 16);
    const auto less =
        read_topology(replaced(shipped_node(), "name=\"mlx5_3\"", "name=\"mlx5_x\""), "b.xml").value();
    CHECK(judge_topology(*parts, less).what.front() == "HCA mlx5_3 is missing");
}

TEST_CASE("a baseline file that is damaged, huge or none could not be looked at", "[sweep]") {
    const scratch files;
    const auto looked = [&](const std::string& text) {
        return check_topology(files.write("g.xml", text)).is;
    };
    const auto whole = shipped_node();
    for (const auto& text :
         {std::string(), std::string("<topology/>"), std::string("\0<", 2), whole.substr(0, 4000),
          whole.substr(0, whole.size() / 2), std::string(max_topology_bytes + 1, '<')})
        CHECK(looked(text) == verdict::unknown);
    for (std::size_t cut = 0; cut < whole.size(); cut += whole.size() / 40)
        CHECK(looked(whole.substr(0, cut)) == verdict::unknown);
    CHECK(check_topology(files.path / "none").is == verdict::unknown);
    CHECK(check_topology("/dev/zero").is == verdict::unknown);
}

TEST_CASE("a machine is the one that it was when its baseline file was written", "[sweep]") {
    const scratch files;
    // In a child process, as the program does it: hwloc's reader of PCI leaves memory behind.
    const auto looked = [&](const std::function<finding()>& work) {
        const auto until = banyan::clock::now() + std::chrono::seconds(60);
        return finding_from(look_apart([&] { return as_json(work()); }, until).value()).value();
    };
    const auto here =
        looked([] { return look_at_machine().value().empty() ? unfit("empty") : fit("something"); });
    CHECK(here.is == verdict::fit);
    // Of one that does not change meanwhile: a virtual machine's memory may.
    const auto same = looked([&] {
        ::setenv("HWLOC_SYNTHETIC", "pack:2 [numa(memory=8GB)] core:4 pu:2", 1);
        std::string xml;
        (void)look_at_machine(&xml);
        return check_topology(files.write("g.xml", xml));
    });
    CHECK(same.is == verdict::fit);
    CHECK(same.what == std::vector<std::string>{"all 20 objects of the baseline node are here"});
}

TEST_CASE("the triad takes what is there, and no more", "[sweep]") {
    constexpr std::uint64_t gib = 1u << 30;
    for (const std::size_t threads : {1u, 2u, 64u, 512u})
        for (const auto available : {0 * gib, gib / 4, gib, 8 * gib, 2048 * gib}) {
            const auto n = numbers_per_thread(threads, available);
            CHECK(n * threads * 3 * sizeof(double) <= available / 4);
        }
    CHECK(numbers_per_thread(1, 2048 * gib) * sizeof(double) == gib / 4);
    CHECK(numbers_per_thread(128, 2048 * gib) * sizeof(double) == gib / 64);
    CHECK(measure_triad(100'000, std::chrono::milliseconds(1)).value() > 0);
    CHECK(!measure_triad(0, std::chrono::milliseconds(1)));
}

TEST_CASE("bandwidth is judged in 10^9 bytes", "[sweep]") {
    CHECK(judge_bandwidth(200e9, 200).is == verdict::fit);
    CHECK(judge_bandwidth(199.9e9, 200).is == verdict::unfit);
    CHECK(judge_bandwidth(199.94e9, 200).what.front() == "199.9 GB/s by a triad on all CPUs, expected 200");
}

}  // namespace test_machine
