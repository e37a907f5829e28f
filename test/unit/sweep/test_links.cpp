// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "hardware/small_file.hpp"
#include "scratch_folder.hpp"
#include "sweep/links.hpp"

namespace test_links {

using namespace banyan::sweep;

namespace {

const std::string classes = "sys/class/infiniband/";

void add_port(const scratch& root, const std::string& device, const std::string& port = "1",
              const std::string& state = "4: ACTIVE", const std::string& layer = "InfiniBand",
              const std::string& rate = "400 Gb/sec (4X NDR)") {
    const auto folder = classes + device + "/ports/" + port + "/";
    root.write(folder + "state", state + "\n");
    root.write(folder + "phys_state", state.starts_with("4") ? "5: LinkUp\n" : "2: Polling\n");
    root.write(folder + "rate", rate + "\n");
    root.write(folder + "link_layer", layer + "\n");
}

finding look(const scratch& root, std::uint32_t wanted, std::uint32_t rate = 0) {
    return judge_ports(read_ports(root.path).value(), wanted, rate);
}

}  // namespace

TEST_CASE("as many active ports as expected are fit, one less is not", "[sweep]") {
    const scratch root;
    for (int i = 0; i < 100; ++i) add_port(root, fmt::format("mlx5_{}", i));
    CHECK(look(root, 100, 400).is == verdict::fit);
    CHECK(look(root, 8).is == verdict::fit);
    CHECK(look(root, 101).is == verdict::unfit);
    add_port(root, "mlx5_7", "1", "1: DOWN");
    const auto found = look(root, 100);
    CHECK(found.is == verdict::unfit);
    CHECK(found.what.front() == "99 InfiniBand ports are active, expected 100");
    CHECK(found.what.back() == "mlx5_7/1 is DOWN, Polling");
    CHECK(found.figures.at("links_active") == 99);
    CHECK(look(root, 99).is == verdict::fit);
}

TEST_CASE("a slow port does not count, nor does one of Ethernet", "[sweep]") {
    const scratch root;
    add_port(root, "mlx5_0");
    add_port(root, "mlx5_1", "1", "4: ACTIVE", "InfiniBand", "200 Gb/sec (4X HDR)");
    add_port(root, "mlx5_2", "1", "4: ACTIVE", "Ethernet");
    add_port(root, "mlx4_0", "1", "4: ACTIVE", "InfiniBand", "2.5 Gb/sec (1X SDR)");
    CHECK(look(root, 3).is == verdict::fit);
    CHECK(look(root, 2, 200).is == verdict::fit);
    const auto found = look(root, 2, 400);
    CHECK(found.is == verdict::unfit);
    CHECK(found.what ==
          std::vector<std::string>{"1 InfiniBand port is active with 400 Gb/s or more, expected 2",
                                   "1 Ethernet port does not count",
                                   "mlx4_0/1 runs at 2.5 Gb/sec (1X SDR), expected 400 Gb/s",
                                   "mlx5_1/1 runs at 200 Gb/sec (4X HDR), expected 400 Gb/s"});
}

TEST_CASE("no HCA is none, and no /sys is not", "[sweep]") {
    const scratch root;
    CHECK(!read_ports(root.path));
    std::filesystem::create_directories(root.path / "sys/class/net");
    CHECK(look(root, 1).is == verdict::unfit);
    std::filesystem::create_directories(root.path / classes);
    CHECK(look(root, 1).is == verdict::unfit);
    root.write(classes + "mlx5_0/node_desc", "a device without ports");
    CHECK(look(root, 1).is == verdict::unknown);
}

TEST_CASE("what cannot be read is not known, unless the others suffice", "[sweep]") {
    const scratch root;
    add_port(root, "mlx5_0");
    add_port(root, "mlx5_1");
    const auto state = root.path / classes / "mlx5_1/ports/1/state";
    std::filesystem::remove(state);
    CHECK(look(root, 2).is == verdict::unknown);
    CHECK(look(root, 1).is == verdict::fit);
    CHECK(look(root, 3).is == verdict::unfit);
    SECTION("a FIFO") { REQUIRE(::mkfifo(state.c_str(), 0600) == 0); }
    SECTION("a device without an end") { std::filesystem::create_symlink("/dev/zero", state); }
    SECTION("a folder") { std::filesystem::create_directory(state); }
    SECTION("a large file") { root.write(classes + "mlx5_1/ports/1/state", std::string(10'000, '4')); }
    CHECK(look(root, 2).is == verdict::unknown);
}

TEST_CASE("words that no kernel writes are not an active port", "[sweep]") {
    for (const auto* state :
         {"", "4", "4:", "ACTIVE", "44: ACTIVE", "\n\n", "4 : ACTIVE", "\x1b[2J4: ACTIVE"}) {
        const scratch root;
        add_port(root, "mlx5_0", "1", "4: ACTIVE");
        root.write(classes + "mlx5_0/ports/1/phys_state", state);
        CHECK(look(root, 1).is == verdict::unfit);
    }
    const scratch root;
    add_port(root, "mlx5_0", "1", "4: ACTIVE", "InfiniBand", "nan Gb/sec");
    CHECK(look(root, 1, 1).is == verdict::unfit);
    CHECK(look(root, 1, 0).is == verdict::fit);
}

TEST_CASE("a small file is read to its end, and no further than it may", "[sweep]") {
    const scratch root;
    CHECK(banyan::hardware::read_small(root.write("a", "  x y\n\n")).value() == "x y");
    CHECK(banyan::hardware::read_small(root.write("b", std::string(10, 'x')), 10).value().size() == 10);
    CHECK(!banyan::hardware::read_small(root.write("c", std::string(11, 'x')), 10));
    CHECK(!banyan::hardware::read_small(root.path / "none"));
    CHECK(!banyan::hardware::read_small("/dev/null"));
}

}  // namespace test_links
