// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says of HCAs, PCIe, memory, disks, file systems and itself; and what only looks like that.
#include <filesystem>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/catalog/symptom.hpp"
#include "fault/incident/engine.hpp"
#include "fault/policy/policy_file.hpp"
#include "fault/sources/symptom_lines.hpp"
#include "test/built.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_symptoms {

using namespace banyan::fault;
using catalog::symptom;

namespace {

struct form {
    const char* text;
    symptom code;
    const char* device;
};

const form forms[] = {
    {"mlx5_core 0000:3b:00.0: poll_health:855:(pid 0): device's health compromised - reached miss count",
     symptom::hca_health, "0000:3b:00"},
    {"mlx5_core 0000:3B:00.1: print_health_info:425:(pid 912): Health issue observed, firmware internal "
     "error, "
     "severity(3) ERROR:",
     symptom::hca_health, "0000:3b:00"},
    {"mlx5_core 0000:3b:00.0: print_health_info:425:(pid 912): Health issue observed, High temperature, "
     "severity(3) ERROR:",
     symptom::hca_temperature, "0000:3b:00"},
    {"mlx5_core 0000:3b:00.0: print_health_info:392:(pid 0): synd 0x8: unrecoverable hardware error",
     symptom::hca_health, "0000:3b:00"},
    {"mlx5_core 0000:3b:00.0: mlx5_health_try_recover:335:(pid 9): handling bad device here",
     symptom::hca_health, "0000:3b:00"},
    {"mlx5_core 0000:03:00.0: wait_func:964:(pid 112): ENABLE_HCA(0x104) timeout. Will cause a leak of a "
     "command resource",
     symptom::hca_command, "0000:03:00"},
    {"mlx5_core 0000:12:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot "
     "(27W).",
     symptom::hca_power, "0000:12:00"},
    {"mlx5_core 0000:12:00.0: mlx5_pcie_event:299: Detected insufficient power on the PCIe slot (27W).",
     symptom::hca_power, "0000:12:00"},
    {"mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
     symptom::hca_temperature, "0000:5c:00"},
    {"mlx5_core 0000:5c:00.0: port_module:252:(pid 0): Port module event[error]: module 1, Cable error, Bad "
     "or "
     "shorted cable/module",
     symptom::hca_module, "0000:5c:00"},
    {"mlx5_core 0000:5c:00.0: Port module event: module 0, Cable unplugged", symptom::hca_cable,
     "0000:5c:00"},
    {"NETDEV WATCHDOG: ens1f0np0 (mlx5_core): transmit queue 3 timed out", symptom::hca_transmit,
     "ens1f0np0"},
    {"mlx5_core 0000:5c:00.0 ens1f0np0: TX timeout detected", symptom::hca_transmit, "0000:5c:00"},
    {"mlx5_core 0000:5c:00.0 mlx5_0: Port: 1 Link DOWN", symptom::hca_port_down, "0000:5c:00"},
    {"mlx5_core 0000:5c:00.0: mlx5_0: Port: 1 Link DOWN", symptom::hca_port_down, "0000:5c:00"},
    {"mlx5_core 0000:5c:00.0 ens1f0np0: Link down", symptom::hca_port_down, "0000:5c:00"},
    {"pcieport 0000:00:1c.0: AER: Corrected error received: 0000:02:00.0", symptom::pcie_corrected,
     "0000:02:00"},
    {"pcieport 0000:00:1c.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:02:00.0",
     symptom::pcie_nonfatal, "0000:02:00"},
    {"pcieport 0000:00:1c.0: AER: Uncorrectable (Fatal) error message received from 0000:02:00.0",
     symptom::pcie_fatal, "0000:02:00"},
    {"pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: id=00e0", symptom::pcie_fatal,
     "0000:00:1c"},
    {"nvidia 0000:5d:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester "
     "ID)",
     symptom::pcie_fatal, "0000:5d:00"},
    {"mlx5_core 0000:5d:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
     symptom::pcie_corrected, "0000:5d:00"},
    {"pcieport 0000:00:01.1: AER: device recovery failed", symptom::pcie_lost, "0000:00:01"},
    {"pcieport 0000:40:01.1: DPC: containment event, status:0x1f01 source:0x0000", symptom::pcie_lost,
     "0000:40:01"},
    {"pcieport 0000:40:01.1: pciehp: Slot(12-1): Link Down", symptom::pcie_slot, "0000:40:01"},
    {"mce: [Hardware Error]: Machine check events logged", symptom::cpu_corrected, "CPU"},
    {"mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00000000100402",
     symptom::cpu_uncorrected, "CPU 3"},
    {"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 6: 9c00004000010091", symptom::cpu_corrected,
     "CPU 0"},
    {"mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 6: bc00004000010091", symptom::cpu_uncorrected,
     "CPU 0"},
    {"mce: Uncorrected hardware memory error in user-access at 1f3e5a000", symptom::memory_uncorrected,
     "memory"},
    {"Memory failure: 0x1f3e5a: recovery action for dirty LRU page: Recovered", symptom::memory_page,
     "memory"},
    {"EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x3e5a1 "
     "offset:0x0 grain:32 syndrome:0x0)",
     symptom::memory_corrected, "MC0"},
    {"EDAC MC1: 2 UE on mc#1csrow#0channel#0 (csrow:0 channel:0 page:0x0 offset:0x0 grain:64)",
     symptom::memory_uncorrected, "MC1"},
    {"{1}[Hardware Error]: event severity: fatal", symptom::firmware_fatal, "firmware"},
    {"{12}[Hardware Error]: event severity: recoverable", symptom::firmware_recoverable, "firmware"},
    {"{2}[Hardware Error]: event severity: corrected", symptom::firmware_corrected, "firmware"},
    {"nvme nvme0: I/O 832 QID 3 timeout, reset controller", symptom::disk_timeout, "nvme0"},
    {"nvme nvme0: I/O tag 123 (3080) opcode 0x1 (Write) QID 4 timeout, aborting req_op:WRITE(1) size:4096",
     symptom::disk_timeout, "nvme0"},
    {"nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", symptom::disk_timeout,
     "nvme0"},
    {"nvme nvme0: Removing after probe failure status: -19", symptom::disk_lost, "nvme0"},
    {"nvme nvme0: Disabling device after reset failure: -19", symptom::disk_lost, "nvme0"},
    {"blk_update_request: I/O error, dev nvme0n1, sector 3907028992 op 0x0:(READ) flags 0x80700 phys_seg 1 "
     "prio class 0",
     symptom::disk_error, "nvme0"},
    {"I/O error, dev sda, sector 12 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", symptom::disk_error,
     "sda"},
    {"critical medium error, dev nvme1n1, sector 12 op 0x0:(READ) flags 0x0", symptom::disk_error, "nvme1"},
    {"Buffer I/O error on dev sda1, logical block 5, async page read", symptom::disk_error, "sda"},
    {"EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm bash: reading directory lblock "
     "0",
     symptom::file_system_error, "nvme0"},
    {"EXT4-fs (sda2): Remounting filesystem read-only", symptom::file_system_readonly, "sda"},
    {"EXT4-fs (dm-2): Remounting filesystem read-only", symptom::file_system_error, "dm-2"},
    {"Aborting journal on device sda2-8.", symptom::file_system_readonly, "sda"},
    {"XFS (nvme0n1p1): Filesystem has been shut down due to log error (0x2).", symptom::file_system_readonly,
     "nvme0"},
    {"XFS (md127): Corruption detected. Unmount and run xfs_repair", symptom::file_system_error, "md127"},
    {"XFS (sda1): metadata I/O error in \"xfs_trans_read_buf_map\" at daddr 0x1 len 8 error 5",
     symptom::file_system_error, "sda"},
    {"BTRFS info (device sda2): forced readonly", symptom::file_system_readonly, "sda"},
    {"BTRFS info (device sda2 state E): forced readonly", symptom::file_system_readonly, "sda"},
    {"BTRFS: error (device sda2) in btrfs_commit_transaction:2438: errno=-5 IO failure",
     symptom::file_system_error, "sda"},
    {"nfs: server nas01 not responding, still trying", symptom::file_system_server, "NFS"},
    {"LustreError: 167-0: scratch-OST0001-osc-ffff8: This client was evicted by scratch-OST0001; in progress "
     "operations using this service will fail.",
     symptom::file_system_error, "Lustre"},
    {"INFO: task python:12345 blocked for more than 120 seconds.", symptom::hung_task, "kernel"},
    {"INFO: task a b: c:d:12345 blocked in I/O wait for more than 122 seconds.", symptom::hung_task,
     "kernel"},
    {"watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python:77]", symptom::soft_lockup, "CPU 5"},
    {"NMI watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python:77]", symptom::soft_lockup, "CPU 5"},
    {"NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", symptom::hard_lockup, "CPU 3"},
    {"rcu: INFO: rcu_sched self-detected stall on CPU", symptom::stall, "kernel"},
    {"rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", symptom::stall, "kernel"},
    {"Kernel panic - not syncing: Fatal exception", symptom::panic, "kernel"},
    {"BUG: unable to handle page fault for address: ffffffff", symptom::oops, "kernel"},
    {"kernel BUG at fs/inode.c:611!", symptom::oops, "kernel"},
    {"Memory cgroup out of memory: Killed process 42 (python) total-vm:1kB, anon-rss:1kB",
     symptom::out_of_memory_job, "job memory"},
    {"Out of memory: Killed process 42 (a) b) total-vm:1kB", symptom::out_of_memory_node, "memory"},
    {"Out of memory: Kill process 42 (python) score 900 or sacrifice child", symptom::out_of_memory_node,
     "memory"},
    {"NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x26:0xffff:1482)", symptom::gpu_init, "0000:5d:00"},
    {"NVRM: GPU 0000:5d:00.0: rm_init_adapter failed, device minor number 0", symptom::gpu_init,
     "0000:5d:00"},
    {"NVRM: rm_init_adapter failed for device bearing minor number 3", symptom::gpu_init, "GPU driver"},
    {"NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to "
     "recover.",
     symptom::gpu_driver, "GPU driver"},
    {"NVRM: The NVIDIA probe routine failed for 1 device(s).", symptom::gpu_count, "GPU driver"},
};

std::optional<kernel_fault> parse(std::string_view text) {
    kernel_parser parser;
    return parser.line(text).fault;
}

}  // namespace

TEST_CASE("what the kernel says of the parts of a node", "[fault]") {
    std::set<symptom> met;
    for (const auto& f : forms) {
        CAPTURE(f.text);
        const auto found = parse(f.text);
        REQUIRE(found);
        CHECK(found->kind == fault_kind::symptom);
        CHECK(catalog::find_symptom(found->code)->name ==
              catalog::find_symptom(static_cast<std::uint32_t>(f.code))->name);
        CHECK(found->device == f.device);
        CHECK(begins_as_fault(f.text));
        met.insert(f.code);
    }
    for (const auto& row : catalog::symptoms()) {
        CAPTURE(row.name);
        if (row.reason == "job-nccl") continue;                                         // of another log
        if (catalog::is_told_of_a_job(static_cast<std::uint32_t>(row.code))) continue;  // of none
        if (row.code == symptom::pcie_switch) continue;  // what several lines together come to
        // No line: looks at the hardware tell these.
        if (row.code == symptom::hca_errors || row.code == symptom::hca_port_up ||
            row.code == symptom::gpu_memory || row.code == symptom::gpu_slow ||
            row.code == symptom::gpu_missing)
            continue;
        CHECK(met.contains(row.code));
    }
}

TEST_CASE("a card that is lost in one, two and three lines", "[fault]") {
    const std::string head = "NVRM: The NVIDIA GPU 0000:9a:00.0", id = "(PCI ID: 10de:2330)",
                      has = "installed in this system has",
                      fell = "fallen off the bus and is not responding to commands.";
    const std::vector<std::vector<std::string>> ways{
        {head + " " + id + " " + has + " " + fell},
        {head + " " + id, "NVRM: " + has + " " + fell},
        {head, "NVRM: " + id + " " + has + " " + fell},
        {head + " " + id + " " + has, "NVRM: " + fell},
        {head, "NVRM: " + id + " " + has, "NVRM: " + fell},
        {head, "usb 1-1: new device", "NVRM: " + id + " " + has, "NVRM: " + fell},
    };
    for (const auto& way : ways) {
        kernel_parser parser;
        std::vector<kernel_fault> found;
        for (const auto& line : way)
            if (auto one = parser.line(line).fault) found.push_back(*one);
        CAPTURE(way.front(), way.size());
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == fault_kind::bus_loss);
        CHECK(found[0].bdf == "0000:9a:00");
    }
    kernel_parser parser;
    CHECK_FALSE(parser.line(head + " " + id + " is not supported by this driver").fault);
    CHECK_FALSE(parser.line("NVRM: " + has + " " + fell).fault);
    CHECK_FALSE(parser.line("NVRM: " + fell).fault);
}

TEST_CASE("what is near to a fault and none", "[fault]") {
    for (const std::string_view text : {
             "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 14): ACCESS_REG(0x805) op_mod(0x1) failed, "
             "status "
             "bad operation(0x2), syndrome (0x305684), err(-22)",
             "mlx5_core 0000:d2:00.0: wait_func:964:(pid 1): ACCESS_REG(0x805) timeout. Will cause a leak of "
             "a "
             "command resource",
             "mlx5_core 0000:5c:00.0: Port module event: module 0, Cable plugged",
             "mlx5_core 0000:5c:00.0 mlx5_0: Port: 1 Link ACTIVE",
             "mlx5_core 0000:5c:00.0 ens1: Link up",
             "mlx5_core 0000:3b:00.0: print_health_info:392:(pid 0): synd 0x0: unrecognized error",
             "mlx5_core 0000:5c:00.0: firmware version: 20.31.1014",
             "pcieport 0000:00:1c.0: AER: enabled with IRQ 28",
             "pcieport 0000:00:1c.0: pciehp: Slot(5): Link Up",
             "pcieport 0000:00:01.1: AER: device recovery successful",
             "EXT4-fs (sda2): mounted filesystem with ordered data mode",
             "EXT4-fs (sda2): re-mounted. Opts: ro",
             "XFS (sda1): Mounting V5 Filesystem",
             "XFS (sda1): Ending clean mount",
             "nvme nvme0: 8/0/0 default/read/poll queues",
             "EDAC MC0: Giving out device to module skx_edac",
             "mce: CPU0: Thermal monitoring enabled",
             "nfs: server nas01 OK",
             "NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out",
             "BTRFS info (device sda2): using crc32c (crc32c-intel) checksum algorithm",
             "Kernel command line: BOOT_IMAGE=/vmlinuz ro",
             "Out of memory handling is off",
             "rcu: INFO: rcu_sched kthread is up",
             // What lies in a container's image, which its user made.
             "EXT4-fs error (device loop3): ext4_find_entry:1455: inode #2: comm bash: reading directory "
             "lblock 0",
             "EXT4-fs (loop3): Remounting filesystem read-only",
             "Aborting journal on device loop0-8.",
             "XFS (loop0): Filesystem has been shut down due to log error (0x2).",
             "blk_update_request: I/O error, dev loop0, sector 0",
             "I/O error, dev fd0, sector 0 op 0x0:(READ)",
             "Buffer I/O error on dev sr0, logical block 0, async page read",
         }) {
        CAPTURE(text);
        CHECK_FALSE(parse(text));
    }
}

// The kernel begins some messages with the name of a process: a user chooses 15 characters.
TEST_CASE("a process named like the beginning of a fault", "[fault][hostile]") {
    for (const auto& f : forms)
        for (std::size_t n = 1; n <= 15; ++n)
            for (const std::string more :
                 {"[77]: segfault at 0 ip 00007f sp 00007f error 4 in a[7f+1000] likely on CPU 3 (core 1, "
                  "socket 0)",
                  " invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, "
                  "oom_score_adj=0",
                  ": page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
                  "[77] general protection fault ip:7f sp:7f error:0 in a[7f+1000]",
                  "[77] trap int3 ip:7f sp:7f error:0 in a[7f+1000]", " (77): drop_caches: 3",
                  ": potentially unexpected fatal signal 11.",
                  " (77) used greatest stack depth: 10 bytes left",
                  "/77 is trying to acquire lock:", " uses obsolete (PF_INET,SOCK_PACKET)"})
                for (const auto* text :
                     {f.text, "NVRM: Xid (0:00:00): 79", "NVRM: GPU 5d:00 has fallen off"}) {
                    const auto line = std::string(text).substr(0, n) + more;
                    CAPTURE(line);
                    CHECK_FALSE(parse(line));
                }
}

TEST_CASE("what goes on about one part of a node is one incident", "[fault]") {
    engine known;
    using testing::event_of;
    const auto at = [&](const char* text, std::int64_t ms) { return known.absorb(event_of(text, ms), ms); };
    const auto disk = at("nvme nvme0: I/O 832 QID 3 timeout, reset controller", 1'000'000);
    CHECK(disk.created);
    // Hours later, and worse.
    const auto again = at("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", 9'000'000);
    CHECK(again.number == disk.number);
    CHECK(again.escalated);
    const auto* i = known.find(disk.number);
    CHECK(i->object.text() == "n03 nvme0");
    CHECK(i->reason == "file-system");
    CHECK(shipped_policy().decide(*i).step == step_kind::drain);
    // Another disk, and a job that was killed, are others.
    CHECK(at("nvme nvme1: I/O 832 QID 3 timeout, reset controller", 9'000'100).created);
    const auto job = at("Memory cgroup out of memory: Killed process 4 (a) total-vm:1kB", 9'000'200);
    CHECK(job.created);
    CHECK(shipped_policy().decide(*known.find(job.number)).step == step_kind::none);
    // A GPU's fault at the same moment is none of theirs.
    const auto gpu = at("NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.", 9'000'300);
    CHECK(gpu.created);
    CHECK(known.find(gpu.number)->object.kind == object_kind::gpu);
}

TEST_CASE("a GPU and its place on the bus are one fault", "[fault]") {
    using testing::event_of;
    const auto aer =
        "nvidia 0000:03:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer";
    const auto xid = "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.";
    for (const bool bus_first : {true, false}) {
        engine known;
        const auto a = known.absorb(event_of(bus_first ? aer : xid, 1'000'000), 1'000'000);
        const auto b = known.absorb(event_of(bus_first ? xid : aer, 1'000'100), 1'000'100);
        CHECK(a.number == b.number);
        const auto* i = known.find(a.number);
        CHECK(i->reason == "gpu-xid-79");
        CHECK(i->object.kind == object_kind::gpu);
        CHECK(i->object.device.empty());
        CHECK(shipped_policy().decide(*i).step == step_kind::node_out);
    }
    engine known;
    const auto a = known.absorb(event_of(aer, 1'000'000), 1'000'000);
    CHECK(known.absorb(event_of("NVRM: Xid (PCI:0000:04:00): 79, x", 1'000'100), 1'000'100).number !=
          a.number);
}

TEST_CASE("an event about a part of a node travels whole", "[fault]") {
    auto sent = testing::event_of("nvme nvme0: Removing after probe failure status: -19");
    const auto arrive = [&] { return event_from(nlohmann::json::parse(to_json(sent).dump())); };
    const auto got = arrive();
    REQUIRE(got);
    CHECK(got->fault.kind == fault_kind::symptom);
    CHECK(got->fault.device == "nvme0");
    CHECK(precedence_of(got->fault) == precedence::reset);
    // Of a newer release: a person looks.
    sent.fault.code = 9999;
    CHECK(precedence_of(arrive()->fault) == precedence::alert);
}

TEST_CASE("every reason has its page", "[fault]") {
    for (const auto& row : catalog::symptoms())
        CHECK(std::filesystem::exists(banyan::testing::source("docs/runbook/") + std::string(row.reason) +
                                      ".md"));
}

}  // namespace test_symptoms
