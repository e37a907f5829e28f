// SPDX-License-Identifier: BSD-3-Clause
//
// One line of each source, from the log to what the controller does: the event that `banyan-fault parse`
// shows, the incident, and whether the node stays.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/parse/any_log.hpp"
#include "test/unit/fault/controller_bench.hpp"

namespace test_source_lines {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

struct row {
    const char *lines, *kind, *reason;
    object_kind culprit;
    step_kind asked;
};

// clang-format off
const row rows[] = {
    {"NVRM: GPU 0000:03:00.0: GPU has fallen off the bus.", "bus-loss", "gpu-xid-79", object_kind::gpu, step_kind::node_out},
    {"NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to commands.",
     "bus-loss", "gpu-xid-79", object_kind::gpu, step_kind::node_out},
    {"NVRM: The NVIDIA GPU 0000:03:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to commands.",
     "bus-loss", "gpu-xid-79", object_kind::gpu, step_kind::node_out},
    {"NVRM: The NVIDIA GPU 0000:03:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
     "bus-loss", "gpu-xid-79", object_kind::gpu, step_kind::node_out},
    {"NVRM: GPU 0000:03:00.0: RmInitAdapter failed! (0x26:0xffff:1482)", "gpu-init", "gpu-alert", object_kind::gpu, step_kind::alert},
    {"NVRM: RmInitAdapter failed! (0x26:0xffff:1482)", "gpu-init", "gpu-alert", object_kind::node, step_kind::alert},
    {"NVRM: The NVIDIA probe routine failed for 1 device(s).", "gpu-probe", "gpu-alert", object_kind::node, step_kind::alert},
    {"NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.", "gpu-driver", "gpu-alert",
     object_kind::node, step_kind::alert},
    {"NVRM: Xid (PCI:0000:03:00): 31, pid=4711, name=python3, Ch 00000008, intr 10000000. MMU Fault", "xid", "gpu-app", object_kind::gpu,
     step_kind::none},
    {"NVRM: Xid (PCI:0000:03:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000)", "xid", "gpu-reset",
     object_kind::gpu, step_kind::drain},
    {"NVRM: Xid (PCI:0000:03:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x000", "xid", "gpu-nvlink", object_kind::gpu,
     step_kind::alert},
    {"NVRM: Xid (PCI:0000:03:00): 145, RLW_REMAP Nonfatal XC1 i0 Link -1 (0x00000082 0x00000004 0x00000000)", "xid", "gpu-app",
     object_kind::gpu, step_kind::none},
    {"NVRM: Xid (PCI:0000:03:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 04 (0x00000226 0x00000001 0x00000000)", "xid", "gpu-note",
     object_kind::gpu, step_kind::none},
    {"mlx5_core 0000:3b:00.0: poll_health:855:(pid 0): device's health compromised - reached miss count", "hca-health", "hca-health",
     object_kind::hca, step_kind::drain},
    {"mlx5_core 0000:3b:00.0: Port module event: module 0, Cable unplugged", "hca-cable", "hca-alert", object_kind::hca, step_kind::alert},
    {"pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: 0000:02:00.0", "pcie-fatal", "pcie", object_kind::node, step_kind::drain},
    {"mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00000000100402", "cpu-uncorrected", "memory", object_kind::node,
     step_kind::drain},
    {"EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x3e5a1 offset:0x0 grain:32 syndrome:0x0)",
     "memory-corrected", "memory", object_kind::node, step_kind::none},
    {"nvme nvme0: Removing after probe failure status: -19", "disk-lost", "disk", object_kind::node, step_kind::drain},
    {"EXT4-fs (sda2): Remounting filesystem read-only", "file-system-readonly", "file-system", object_kind::node, step_kind::drain},
    {"watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python:77]", "soft-lockup", "kernel", object_kind::node, step_kind::alert},
    {"Memory cgroup out of memory: Killed process 42 (python) total-vm:1kB, anon-rss:1kB", "out-of-memory-job", "job-memory",
     object_kind::node, step_kind::none},
};
// clang-format on

}  // namespace

TEST_CASE("one line of each source: what parse shows, and what the controller asks for", "[fault]") {
    for (const auto& r : rows) {
        CAPTURE(r.lines);
        any_log log(log_format::kmsg);
        std::vector<reading> shown;
        controller_bench b;
        b.settings.dry_run = true;
        std::uint64_t position = 0;
        for (const auto line : split(r.lines, '\n'))
            log.line(fmt::format("[    1.{:06}] {}", ++position, line),
                     [&](const reading& one) { shown.push_back(one); });
        REQUIRE(shown.size() == 1);
        CHECK(shown[0].kind == r.kind);
        auto e = event_of(r.lines, clock::wall_ms(), 1);
        e.node = "n03";
        e.boot_id = "boot";
        e.stream = "s";
        e.line_ms = clock::wall_ms();
        e.text = printable(r.lines);
        REQUIRE(shown[0].fault);
        e.fault = *shown[0].fault;
        const bool of_a_process = !e.fault.pid.empty();
        if (of_a_process) e.job = 7;  // as the agent finds it by the process's cgroup
        const auto got = b.live({e});
        REQUIRE(got.size() == 1);
        CHECK(got[0].reason == r.reason);
        CHECK(got[0].object.kind == r.culprit);
        CHECK(got[0].decided == static_cast<std::uint8_t>(r.asked));
        CHECK(got[0].accused == (of_a_process ? 7u : 0u));
        CHECK(b.slurm.calls.empty());
    }
}

}  // namespace test_source_lines
