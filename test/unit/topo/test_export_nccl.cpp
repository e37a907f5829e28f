// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-topo nccl prints and writes: node types, the PCIe tree out of hwloc's XML, NCCL's topology
// file.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <stdexcept>

#include <banyan/topo/reader.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "golden.hpp"
#include "test/built.hpp"
#include "topo/export/affinity.hpp"
#include "topo/export/nccl_xml.hpp"
#include "topo/export/trial.hpp"

namespace test_export_nccl {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

node_type type_of(const std::string& name) {
    const auto types = node_types(model_of(name));
    REQUIRE(types.size() == 1);
    return types[0];
}

machine box() {
    const auto text = read_file(banyan::testing::fixture("export/hwloc-2p8g8h.xml"), 1 << 20);
    const auto m = read_hwloc_xml(text.value(), "hwloc-2p8g8h.xml");
    INFO((m ? std::string() : m.error().text()));
    REQUIRE(m);
    return *m;
}

}  // namespace

TEST_CASE("node types and NCCL_IB_HCA", "[export]") {
    const auto type = type_of("ibnetdiscover.txt");
    CHECK(type.hosts.size() == 16);
    CHECK(nccl_ib_hca(type) == "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1");
    CHECK(type.devices[3].gbps == 200);
}

TEST_CASE("devices of one rail stand in the order that people count in", "[export]") {
    dump_writer d;
    const auto leaf = d.add_switch("leaf");
    unsigned port = 0;
    for (const auto* host : {"gpu1", "gpu2"})
        for (const auto* device : {"ibp139s0", "ibp21s0", "ibp11s0f1", "ibp11s0f0", "ibp203s0"})
            d.link(d.add_hca(fmt::format("{} {}", host, device)), 1, leaf, ++port);
    const auto types = node_types(d.model());
    REQUIRE(types.size() == 1);
    CHECK(nccl_ib_hca(types[0]) == "=ibp11s0f0:1,ibp11s0f1:1,ibp21s0:1,ibp139s0:1,ibp203s0:1");
    CHECK(!types[0].rails_apart);
}

TEST_CASE("rails that no switch joins are apart", "[export]") {
    rail_fabric joined(3, 4, 4, 4);
    CHECK(!node_types(joined.model()).at(0).rails_apart);
    // A leaf that lost its way up does not take its rail apart.
    for (unsigned s = 0; s < 4; ++s) {
        joined.forget(joined.leaves[1][2], 33 + s);
        joined.forget(joined.spines[s], 1 + 4 + 2);
    }
    CHECK(!node_types(joined.model()).at(0).rails_apart);
    // Spines of their own for each rail; with no spine at all the rails do not meet either.
    for (const bool spines : {true, false}) {
        rail_fabric d(3, 4, 2, 0);
        for (unsigned r = 0; spines && r < 2; ++r) {
            const auto spine = d.add_switch(fmt::format("spine-{}", r));
            for (unsigned g = 0; g < 3; ++g) d.link(d.leaves[g][r], 33, spine, 1 + g);
        }
        CHECK(node_types(d.model()).at(0).rails_apart);
    }
    CHECK(!node_types(rail_fabric(3, 4, 1, 0).model()).at(0).rails_apart);
}

TEST_CASE("storage HCAs, lost rails and odd names in node types", "[export]") {
    auto text = fixture("ibnetdiscover.txt");
    const auto replace = [&](const std::string& what, const std::string& with) {
        for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
            text.replace(at, what.size(), with);
    };
    replace("gpu0003 mlx5_2", "gpu0003 mlx5_2$(reboot)");
    build_options options;
    options.site.storage_devices = {{"mlx5_7"}};
    const auto types = node_types(build_fabric(read_ibnetdiscover(text).value(), options));
    REQUIRE(types.size() == 2);
    CHECK(types[0].hosts.size() == 15);
    CHECK(nccl_ib_hca(types[0]) == "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1");
    CHECK(nccl_ib_hca(types[1]) == "=mlx5_0:1,mlx5_1:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1");
    CHECK(types[1].devices.size() == 7);
    CHECK(nccl_ib_hca(node_type{}).empty());
}

TEST_CASE("hwloc: GPUs and HCAs behind PCIe switches", "[export]") {
    const auto m = box();
    CHECK(m.host_name == "gpu0001");
    const auto count = [](const machine& in, io_kind kind) {
        return std::count_if(in.devices.begin(), in.devices.end(),
                             [&](const auto& d) { return d.kind == kind; });
    };
    CHECK(count(m, io_kind::gpu) == 8);
    CHECK(count(m, io_kind::hca) == 9);
    const auto a = affinity_of(m, type_of("ibnetdiscover.txt"));
    REQUIRE(a.gpus.size() == 8);
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK(a.gpus[i].path == pcie_path::pix);
        CHECK(a.gpus[i].numa == (i < 4 ? 0 : 1));
        CHECK(a.gpus[i].rail == static_cast<int>(i));
        CHECK(a.gpus[i].paired == "mlx5_" + std::to_string(i));
        CHECK(a.gpus[i].nearest.size() == 2);
    }
    CHECK(a.unused == std::vector<std::string>{"mlx5_8"});
    CHECK(a.missing.empty());
    const auto small = prune(m, {"mlx5_0"});
    CHECK(count(small, io_kind::hca) == 1);
    CHECK(count(small, io_kind::bridge) == 4);
}

TEST_CASE("paths between a GPU and the HCAs that are left", "[export]") {
    const auto path = [](std::vector<std::string> devices, std::size_t gpu) {
        node_type type;
        for (const auto& d : devices) type.devices.push_back({0, d, 1, 400});
        return affinity_of(box(), type).gpus.at(gpu).path;
    };
    CHECK(path({"mlx5_1"}, 0) == pcie_path::pix);
    CHECK(path({"mlx5_2"}, 0) == pcie_path::node);
    CHECK(path({"mlx5_6"}, 0) == pcie_path::sys);
    CHECK(path({"mlx5_8"}, 6) == pcie_path::phb);  // a root port beside the switch's
    node_type absent;
    absent.devices.push_back({0, "mlx5_77", 1, 400});
    const auto a = affinity_of(box(), absent);
    CHECK(a.gpus[0].paired.empty());
    CHECK(a.missing == std::vector<std::string>{"mlx5_77"});
}

TEST_CASE("two PCIe switches on the way", "[export]") {
    auto m = box();
    // The second GPU's downstream port becomes a switch of its own: both devices of it hang two bridges deep.
    const auto gpus = [&](std::size_t n) {
        for (std::size_t i = 0; i < m.devices.size(); ++i)
            if (m.devices[i].kind == io_kind::gpu && n-- == 0) return i;
        return m.devices.size();
    };
    auto hca = std::find_if(m.devices.begin(), m.devices.end(),
                            [](const auto& d) { return d.names == std::vector<std::string>{"mlx5_1"}; });
    hca->parent = m.devices[gpus(1)].parent;
    const auto a = affinity_of(m, type_of("ibnetdiscover.txt"));
    CHECK(a.gpus[1].path == pcie_path::pix);
    CHECK(a.gpus[1].paired == "mlx5_1");
    node_type only;
    only.devices.push_back({1, "mlx5_1", 1, 400});
    CHECK(affinity_of(m, only).gpus[0].path == pcie_path::pxb);
}

TEST_CASE("NCCL's topology file", "[export]") {
    const auto text = nccl_topology_xml(box(), type_of("ibnetdiscover.txt"), 0x12345678);
    check_golden("nccl-2p8g8h.xml", text);
    // NCCL's reader takes no prolog, and no value of more than 255 bytes.
    CHECK(!text.starts_with("<?"));
    boost::property_tree::ptree tree;
    std::istringstream in(text);
    REQUIRE_NOTHROW(boost::property_tree::read_xml(in, tree));
    const auto& system = tree.get_child("system");
    CHECK(system.get<std::string>("<xmlattr>.version") == "1");
    std::size_t cpus = 0, gpus = 0, nets = 0;
    const std::function<void(const boost::property_tree::ptree&)> walk = [&](const auto& at) {
        for (const auto& [name, child] : at) {
            if (name == "cpu") ++cpus;
            if (name == "pci") {
                CHECK(child.template get<std::string>("<xmlattr>.link_speed") == "32.0 GT/s PCIe");
                CHECK(child.template get<std::string>("<xmlattr>.link_width") == "16");
                gpus += child.template get<std::string>("<xmlattr>.class") == "0x030200";
            }
            if (name == "net")
                CHECK(child.template get<std::string>("<xmlattr>.name") == "mlx5_" + std::to_string(nets++));
            walk(child);
        }
    };
    walk(system);
    CHECK(cpus == 2);
    CHECK(gpus == 8);
    CHECK(nets == 8);
}

TEST_CASE("text that is no hwloc topology is refused", "[export]") {
    for (const std::string text :
         {"", "x", "<topology>", "<?xml version=\"1.0\"?><topology version=\"2.0\"></topology>",
          "<!-- --><system version=\"1\"></system>"}) {
        INFO(text);
        const auto m = read_hwloc_xml(text, "a.xml");
        REQUIRE(!m);
        CHECK(m.error().what.find("a.xml") != std::string::npos);
    }
    auto whole = read_file(banyan::testing::fixture("export/hwloc-2p8g8h.xml"), 1 << 20).value();
    for (std::size_t cut = 0; cut < whole.size(); cut += 997)
        CHECK(!read_hwloc_xml(whole.substr(0, cut), "cut.xml"));
    // libhwloc 2.9 itself crashes on this one.
    whole.replace(whole.find("0x00000003"), 10, "type=\"PU\"");
    CHECK(!read_hwloc_xml(whole, "damaged.xml"));
}

TEST_CASE("a trial tells what we would not survive", "[export]") {
    CHECK(survives([] { return true; }));
    CHECK(!survives([] { return false; }));
    CHECK(!survives([]() -> bool { std::abort(); }));
    CHECK(!survives([]() -> bool { throw std::runtime_error("no"); }));
}

TEST_CASE("PCIe links by their bandwidth", "[export]") {
    CHECK(link_of(63.015385).speed == "32.0 GT/s PCIe");
    CHECK(link_of(31.507692).speed == "16.0 GT/s PCIe");
    CHECK(link_of(31.507692).width == 16);
    CHECK(link_of(15.75).speed == "8.0 GT/s PCIe");
    CHECK(link_of(121.).speed == "64.0 GT/s PCIe");
    CHECK(link_of(0.25).width == 1);
    CHECK(link_of(0).width == 0);
    CHECK(link_of(-1).width == 0);
}

}  // namespace test_export_nccl
