// SPDX-License-Identifier: BSD-3-Clause
//
// The logs of programs: UFM, the fabric manager, NCCL.
#include <catch2/catch.hpp>

#include "fault/sources/program_logs.hpp"
#include "fault/sources/ufm_log.hpp"

namespace test_program_logs {

using namespace banyan::fault;

TEST_CASE("UFM names both ends of a link, and its cable", "[fault]") {
    const auto down = ufm_line(
        "2023-12-20 07:46:24.442 [9021] [329] WARNING [Link] IBPort [Default / Switch: T3-E13 / 1/17/1] "
        "[dev_id: e8ebd30300f7e6c2]: Link went down: (Switch:T3-E13:1/17/1)e8ebd30300f7e6c2:33 - "
        "(Switch:T4-S2:1/4/2)0xb0cf0e0300e3d6a0:8, cable S/N: MT2243VS00123");
    REQUIRE(down);
    CHECK(down->code == 329);
    CHECK(down->kind == "link-down");
    CHECK(down->changes_fabric());
    CHECK(down->node == "T3-E13");
    CHECK(down->port == "1/17/1");
    CHECK(down->guid == 0xe8ebd30300f7e6c2);
    CHECK(down->ports == std::vector<named_port>{{0xe8ebd30300f7e6c2, 33}, {0xb0cf0e0300e3d6a0, 8}});
    CHECK(down->cable == "MT2243VS00123");
    const auto hot = ufm_line(
        "2024-06-20 07:46:24 [1] [920] WARNING [Hardware] IBPort [Default(0) / Computer: gpu7 mlx5_0 / 1] "
        "[dev_id: ab]: Cable temperature high");
    REQUIRE(hot);
    CHECK_FALSE(hot->changes_fabric());
    CHECK(hot->node == "gpu7 mlx5_0");
    CHECK(hot->ports.empty());
}

TEST_CASE("what is no line of UFM's is none, and half an end is no end", "[fault]") {
    const std::string head =
        "2023-12-20 07:46:24.442 [9021] [329] WARNING [Link] IBPort [Default / Switch: T / 1] [dev_id: a]: ";
    for (const char* message :
         {"", "Link went down: (", "Link went down: (a)x:1 - (b)2:2", "Link went down: (a)1:1",
          "Link went down: (a)1: - (b)2:2", "Link went down: (a)1:1 - (b)2:99999999999"}) {
        const auto found = ufm_line(head + message);
        REQUIRE(found);
        CHECK(found->ports.empty());
    }
    for (const char* no : {"x2023-12-20 07:46:24 [1] [329] W [L] T [D]: m", "2023-12-20 07:46:24 [1] [329]",
                           "2023-12-20 07:46:24 [1] [65] INFO [Fabric] T [D]: GID",
                           "2023-12-20 07:46:24 [1] [4711] W [L] T [D]: m"})
        CHECK_FALSE(ufm_line(no));
}

TEST_CASE("the fabric manager's error is the kernel's SXid", "[fault]") {
    const auto found = fabric_manager_line(
        "[Jul 09 2024 18:14:07] [ERROR] [tid 12727] detected NVSwitch fatal error 12028 on fid 0 on NVSwitch "
        "pci bus "
        "id 00000000:86:00.0 physical id 3 port 61");
    REQUIRE(found);
    CHECK(found->fault.kind == fault_kind::sxid);
    CHECK(found->fault.code == 12028);
    CHECK(found->fault.bdf == "0000:86:00");
    CHECK(found->fault.severity == link_severity::fatal);
    CHECK(found->fault.link == 61);
    CHECK(found->time == "Jul 09 2024 18:14:07");
    for (const char* no :
         {"[Jul 09 2024 18:14:07] [INFO] [tid 12727] Fabric Manager - Shutting down", "",
          "[Jul 09 2024 18:14:07] [ERROR] [tid 12727] detected NVSwitch fatal error 12028",
          "[Jul 09 2024 18:14:07] [ERROR] [tid x] detected NVSwitch fatal error 12028 on fid 0",
          "x [Jul 09 2024 18:14:07] [ERROR] [tid 1] detected NVSwitch fatal error 12028 on fid 0"})
        CHECK_FALSE(fabric_manager_line(no));
}

TEST_CASE("NCCL's warnings in the forms of its releases", "[fault]") {
    using catalog::symptom;
    auto found = nccl_line(
        "kp-ddp-worker-0:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer "
        "10.216.210.236<54862> with status=12 opcode=32616 len=0 vendor err 129 (Recv) localGid fd00:1148 "
        "remoteGidsfd00:1148 hca mlx5_3");
    REQUIRE(found);
    CHECK(found->what == symptom::nccl_completion);
    CHECK(found->host == "kp-ddp-worker-0");
    CHECK(found->pid == 3468);
    CHECK(found->status == 12u);
    CHECK(found->hca == "mlx5_3");
    found = nccl_line("[2026-11-22 20:11:12] gpu7:1:2 [0] enqueue.cc:12 NCCL WARN Cuda failure 'x'");
    REQUIRE(found);
    CHECK(found->what == symptom::nccl_cuda);
    found = nccl_line(
        "gpu7:1:2 [0] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_1:1 Got async event : port error");
    REQUIRE(found);
    CHECK(found->what == symptom::nccl_async_event);
    CHECK(found->hca == "mlx5_1");
    // A device's name is one, or none: users write these lines.
    found = nccl_line(
        "gpu7:1:2 [0] NCCL WARN NET/IB: Got completion from peer x with status=12 hca n03 GPU 3; rm");
    REQUIRE(found);
    CHECK(found->hca == "n03");
    found = nccl_line("gpu7:1:2 [0] NCCL WARN NET/IB: Got completion from peer x hca \x1b[2Jmlx5_0");
    REQUIRE(found);
    CHECK(found->hca.empty());
    CHECK_FALSE(nccl_line("gpu7:1:2 [0] NCCL INFO Connected NVLS tree"));
    CHECK_FALSE(nccl_line("step 3: gpu7:1:2 [0] NCCL WARN Cuda failure 'x'"));
}

}  // namespace test_program_logs
