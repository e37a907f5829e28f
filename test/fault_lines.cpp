// SPDX-License-Identifier: BSD-3-Clause
#include "test/fault_lines.hpp"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace banyan::fault::testing {
namespace {

struct pattern {
    log_format format;
    const char* kind;
    const char* text;  // B: a PCI device, D: a disk, N: a number, X: a hex number, P: a process's name
};

constexpr auto k = log_format::kmsg;

// clang-format off
constexpr auto patterns = std::to_array<pattern>({
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid={N}, name={P}, Ch {X}"},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
    {k, "xid", "NVRM: Xid ({G}): {x}, Channel {X}"},
    {k, "xid", "NVRM: Xid (PCI:{G} GPU-I:05): {x}, pid={N}, name={P}, Contained: CE User Channel (0x9). RST: No, D-RST: No"},
    {k, "xid", "NVRM: Xid (PCI:{G} GPU-I:05 GPU-CI:00): {x}, pid={N}, name={P}, Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No"},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid={N}, Row Remapper: New row marked for remapping, reset gpu to activate."},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid={N}, name={P}, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, RLW_SRC_TRACK Nonfatal XC1 i0 Link {N} (0x{X} 0x{X} 0x0)"},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid={N}, name={P}, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"},
    {k, "xid", "NVRM: Xid (PCI:{G}): {x}, pid={N}, name={P}, channel 0x{X} caused by previous Xid 149"},
    {k, "bus-loss", "NVRM: GPU {B}: GPU has fallen off the bus."},
    {k, "bus-loss", "NVRM: The NVIDIA GPU {B} (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to commands."},
    {k, "gpu-init", "NVRM: GPU {B}: RmInitAdapter failed! (0x26:0x{X}:{N})"},
    {k, "gpu-init", "NVRM: GPU {B}: rm_init_adapter failed, device minor number {N}"},
    {k, "gpu-init", "NVRM: RmInitAdapter failed! (0x26:0x{X}:{N})"},
    {k, "gpu-driver", "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x{X}, requiring os reboot to recover."},
    {k, "gpu-probe", "NVRM: The NVIDIA probe routine failed for {N} device(s)."},
    {k, "sxid", "nvidia-nvswitch{N}: SXid (PCI:{B}): {x}, Non-fatal, Link 32 egress non-posted PRIV error (First)"},
    {k, "sxid", "nvidia-nvswitch{N}: SXid (PCI:{B}): {x}, Fatal, Link 7 some error, instance=0, chiplet=5"},
    {k, "sxid", "nvidia-nvswitch{N}: SXid (PCI:{B}): {x}, SOE HALTED"},
    {k, "hca-health", "mlx5_core {B}: poll_health:{N}:(pid 0): device's health compromised - reached miss count"},
    {k, "hca-health", "mlx5_core {B}: print_health_info:{N}:(pid {N}): Health issue observed, firmware internal error, severity(3) ERROR:"},
    {k, "hca-temperature", "mlx5_core {B}: print_health_info:{N}:(pid {N}): Health issue observed, High temperature, severity(3) ERROR:"},
    {k, "hca-health", "mlx5_core {B}: print_health_info:{N}:(pid 0): synd 0x8: unrecoverable hardware error"},
    {k, "hca-command", "mlx5_core {B}: wait_func:{N}:(pid {N}): CREATE_EQ(0x301) timeout. Will cause a leak of a command resource"},
    {k, "hca-power", "mlx5_core {B}: mlx5_pcie_event:{N}:(pid {N}): Detected insufficient power on the PCIe slot ({N}W)."},
    {k, "hca-temperature", "mlx5_core {B}: temp_warn:{N}:(pid 0): High temperature on sensors with bit set 0 0x{X}"},
    {k, "hca-temperature", "mlx5_core {B}: Port module event[error]: module {N}, Cable error, High Temperature"},
    {k, "hca-module", "mlx5_core {B}: port_module:{N}:(pid 0): Port module event[error]: module {N}, Cable error, Power budget exceeded"},
    {k, "hca-cable", "mlx5_core {B}: Port module event: module {N}, Cable unplugged"},
    {k, "hca-transmit", "NETDEV WATCHDOG: ens{N}f0np0 (mlx5_core): transmit queue {N} timed out"},
    {k, "hca-transmit", "mlx5_core {B} ens{N}: TX timeout detected"},
    {k, "hca-port-down", "mlx5_core {B} mlx5_{N}: Port: 1 Link DOWN"},
    {k, "hca-port-down", "mlx5_core {B} ens{N}f0np0: Link down"},
    {k, "pcie-corrected", "pcieport 0000:00:1c.0: AER: Corrected error received: {B}"},
    {k, "pcie-corrected", "pcieport 0000:00:1c.0: AER: Multiple Correctable error message received from {B}"},
    {k, "pcie-nonfatal", "pcieport 0000:00:1c.0: AER: Uncorrected (Non-Fatal) error received: {B}"},
    {k, "pcie-fatal", "pcieport 0000:00:1c.0: AER: Uncorrectable (Fatal) error message received from {B}"},
    {k, "pcie-fatal", "nvidia {B}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"},
    {k, "pcie-corrected", "nvme {B}: AER: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)"},
    {k, "pcie-lost", "pcieport {B}: AER: device recovery failed"},
    {k, "pcie-lost", "pcieport {B}: DPC: containment event, status:0x{X} source:0x0000"},
    {k, "pcie-slot", "pcieport {B}: pciehp: Slot({N}): Link Down"},
    {k, "pcie-slot", "pcieport {B}: pciehp: Slot({N}-1): Card not present"},
    {k, "cpu-corrected", "mce: [Hardware Error]: Machine check events logged"},
    {k, "cpu-corrected", "mce: [Hardware Error]: CPU {N}: Machine Check: 0 Bank {N}: 9c00004000010091"},
    {k, "cpu-uncorrected", "mce: [Hardware Error]: CPU {N}: Machine Check: 0 Bank {N}: be00000000100402"},
    {k, "cpu-uncorrected", "mce: [Hardware Error]: CPU {N}: Machine Check Exception: {N} Bank {N}: b200000000100402"},
    {k, "memory-uncorrected", "mce: Uncorrected hardware memory error in user-access at {X}"},
    {k, "memory-page", "Memory failure: 0x{X}: recovery action for dirty LRU page: Recovered"},
    {k, "memory-corrected", "EDAC MC{N}: {N} CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#{N} (channel:1 slot:0 page:0x{X} offset:0x0 grain:32 syndrome:0x0)"},
    {k, "memory-uncorrected", "EDAC MC{N}: {N} UE memory read error on any memory (channel:0 slot:0 page:0x{X} offset:0x0 grain:32)"},
    {k, "firmware-corrected", "{{{N}}}[Hardware Error]: event severity: corrected"},
    {k, "firmware-recoverable", "{{{N}}}[Hardware Error]: event severity: recoverable"},
    {k, "firmware-fatal", "{{{N}}}[Hardware Error]: event severity: fatal"},
    {k, "disk-timeout", "nvme nvme{N}: I/O {N} QID {N} timeout, aborting"},
    {k, "disk-timeout", "nvme nvme{N}: I/O tag {N} ({X}) opcode 0x1 (Write) QID {N} timeout, reset controller"},
    {k, "disk-timeout", "nvme nvme{N}: controller is down; will reset: CSTS=0x{X}, PCI_STATUS=0x10"},
    {k, "disk-lost", "nvme nvme{N}: Removing after probe failure status: -19"},
    {k, "disk-lost", "nvme nvme{N}: Disabling device after reset failure: -19"},
    {k, "disk-lost", "nvme nvme{N}: Device not ready; aborting reset, CSTS=0x1"},
    {k, "disk-error", "blk_update_request: I/O error, dev {D}, sector {N} op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 0"},
    {k, "disk-error", "I/O error, dev {D}, sector {N} op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"},
    {k, "disk-error", "critical medium error, dev {D}, sector {N} op 0x0:(READ) flags 0x0"},
    {k, "disk-error", "Buffer I/O error on dev {D}, logical block {N}, async page read"},
    {k, "file-system-error", "EXT4-fs error (device {D}): ext4_find_entry:{N}: inode #{N}: comm {P}: reading directory lblock 0"},
    {k, "file-system-readonly", "EXT4-fs ({D}): Remounting filesystem read-only"},
    {k, "file-system-readonly", "Aborting journal on device {D}-8."},
    {k, "file-system-readonly", "XFS ({D}): Filesystem has been shut down due to log error (0x2)."},
    {k, "file-system-error", "XFS ({D}): Corruption detected. Unmount and run xfs_repair"},
    {k, "file-system-readonly", "BTRFS info (device {D} state E): forced readonly"},
    {k, "file-system-error", "BTRFS: error (device {D}) in btrfs_commit_transaction:{N}: errno=-5 IO failure"},
    {k, "file-system-server", "nfs: server nas{N} not responding, still trying"},
    {k, "file-system-error", "LustreError: 167-0: scratch-OST{N}-osc-{X}: This client was evicted by scratch-OST{N}; in progress operations using this service will fail."},
    {k, "hung-task", "INFO: task {P}:{N} blocked for more than {N} seconds."},
    {k, "soft-lockup", "watchdog: BUG: soft lockup - CPU#{N} stuck for {N}s! [{P}:{N}]"},
    {k, "hard-lockup", "NMI watchdog: Watchdog detected hard LOCKUP on cpu {N}"},
    {k, "rcu-stall", "rcu: INFO: rcu_sched self-detected stall on CPU"},
    {k, "rcu-stall", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"},
    {k, "panic", "Kernel panic - not syncing: Fatal exception"},
    {k, "oops", "BUG: unable to handle page fault for address: {X}"},
    {k, "oops", "kernel BUG at fs/inode.c:{N}!"},
    {k, "out-of-memory-job", "Memory cgroup out of memory: Killed process {N} ({P}) total-vm:{N}kB, anon-rss:{N}kB"},
    {k, "out-of-memory-node", "Out of memory: Killed process {N} ({P}) total-vm:{N}kB, anon-rss:{N}kB"},
    {log_format::opensm, "link-trap", "Nov 21 02:25:41 {S} [{X}] 0x01 -> log_trap_info: Received Generic Notice type:1 num:128 (Link state change) Producer:2 (Switch) from LID:{N} TID:0x0000000000000000"},
    {log_format::opensm, "port-removed", "Nov  1 02:25:41 {S} [{X}] 0x02 -> drop_mgr_remove_port: Removed port with GUID:0x{X} LID range [{N}, {N}] of node:gpu{N} mlx5_1"},
    {log_format::opensm, "port-discovered", "Nov 21 02:25:41 {S} [{X}] 0x02 -> state_mgr_report_new_ports: Discovered new port with GUID:0x{X} LID range [{N},{N}] of node: gpu{N} mlx5_1"},
    {log_format::opensm, "port-down", "Jun 17 17:21:28 {S} [{X}] 0x02 -> osm_pi_rcv_process: Switch 0x{X} MF0;spine-{N}:MQM9790/U1 port {N} changed state from ACTIVE to DOWN"},
    {log_format::opensm, "port-down", "Jul 19 18:34:55 {S} [{X}] 0x02 -> osm_spst_rcv_process: Switch 0x{X} MF0;nvl-{N}:N5110_LD/U1 port {N} (sw7p1s1) changed state from ARMED to DOWN"},
    {log_format::opensm, "port-up", "Jun 17 17:21:28 {S} [{X}] 0x02 -> osm_pi_rcv_process: Switch 0x{X} leaf {N} port {N} changed state from INIT to ACTIVE"},
    {log_format::ufm, "link-down", "2023-12-20 07:46:24.{S} [{N}] [329] WARNING [Link] IBPort [Default / Switch: T3-E{N} / 1/{N}/1] [dev_id: {X}]: Link went down: (Switch:T3-E{N}:1/17/1){X}:33 - (Switch:T4:1/4/2){X}:8, cable S/N: MT{N}"},
    {log_format::ufm, "link-downed", "2023-12-20 07:46:24.{S} [{N}] [112] CRITICAL [Hardware] IBPort [Default / Switch: T3-E{N} / 1/{N}/1] [dev_id: {X}]: Link downed counter."},
    {log_format::ufm, "port-unhealthy", "2023-12-20 07:46:24.{S} [{N}] [702] WARNING [Maintenance] IBPort [Default / Switch: T3 / 1/{N}/2]: Peer Port T2:1/19/2 is considered by SM as unhealthy due to FLAPPING."},
    {log_format::fabric_manager, "sxid", "[Jul 09 2024 18:14:07] [ERROR] [tid {N}] detected NVSwitch non-fatal error {x} on fid 0 on NVSwitch pci bus id 0000{B} physical id 3 port {N}"},
    {log_format::fabric_manager, "sxid", "[Jul 09 2024 18:14:07] [ERROR] [tid {N}] detected NVSwitch fatal error {x} on fid 0 on NVSwitch pci bus id 0000{B} physical id 3 port {N}"},
    {log_format::nccl, "nccl-completion", "gpu{N}:{N}:{N} [{N}] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer 10.0.0.{N}<39226> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_{N}"},
    {log_format::nccl, "nccl-async-event", "gpu{N}:{N}:{N} [{N}] NCCL WARN NET/IB : mlx5_{N}:1 Got async event : port error"},
    {log_format::nccl, "nccl-cuda", "[2026-11-22 20:11:12] gpu{N}:{N}:{N} [{N}] enqueue.cc:{N} NCCL WARN Cuda failure 'unspecified launch failure'"},
});

constexpr auto everyday = std::to_array<const char*>({
    "mlx5_core {B}: firmware version: 20.31.1014", "mlx5_core {B} mlx5_{N}: Port: 1 Link ACTIVE",
    "mlx5_core {B}: mlx5_cmd_out_err:838:(pid {N}): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2), syndrome (0x305684), err(-22)",
    "EXT4-fs ({D}): mounted filesystem with ordered data mode. Quota mode: none.", "XFS ({D}): Mounting V5 Filesystem", "XFS ({D}): Ending clean mount",
    "nvme nvme{N}: {N}/0/0 default/read/poll queues", "EDAC MC{N}: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0",
    "mce: CPU{N}: Thermal monitoring enabled (TM1)", "pcieport {B}: AER: enabled with IRQ {N}", "pcieport {B}: pciehp: Slot({N}): Link Up",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15", "nvidia-nvlink: Nvlink Core is being initialized, major device number {N}",
    "nvidia {B}: vgaarb: changed VGA decodes: olddecodes=none,decodes=none", "NVRM: GPU at PCI:{G}: GPU-0a1b2c3d-0000-1111-2222-333344445555",
    "usb 1-{N}: new high-speed USB device number {N} using xhci_hcd", "systemd[1]: Started Session {N} of User root.",
    "IPv6: ADDRCONF(NETDEV_CHANGE): ens{N}: link becomes ready", "audit: type=1400 audit({N}.{N}:{N}): apparmor=\"STATUS\" operation=\"profile_load\"",
    "{P}[{N}]: segfault at {X} ip {X} sp {X} error 4 in a.out[{X}+1000] likely on CPU {N} (core 1, socket 0)",
    "Lustre: scratch-OST{N}-osc-{X}: Connection restored to 10.0.0.{N}@o2ib (at 10.0.0.{N}@o2ib)", "nfs: server nas{N} OK",
    "slurm.epilog.cl ({N}): drop_caches: 3", "perf: interrupt took too long ({N} > 2500), lowering kernel.perf_event_max_sample_rate to {N}",
});

// How the kernel puts a process's name first, or last, or in the middle.
constexpr auto named = std::to_array<const char*>({
    "{P}[{N}]: segfault at {X} ip {X} sp {X} error 4 in a[{X}+1000] likely on CPU {N} (core 1, socket 0)",
    "{P} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
    "{P}: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null),cpuset=/,mems_allowed=0",
    "traps: {P}[{N}] general protection fault ip:{X} sp:{X} error:0 in a[{X}+1000]", "{P} ({N}): drop_caches: 3",
    "{P}: potentially unexpected fatal signal 11.", "{P} ({N}) used greatest stack depth: {N} bytes left",
    "CPU: {N} PID: {N} Comm: {P} Not tainted 6.1.0-13-amd64", "warning: process `{P}' used the deprecated sysctl system call with 1.23.",
    "[  {N}]  1000  {N}    {N}    {N}   98304        0             0 {P}",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/slurm/uid_1000/job_{N},task={P},pid={N},uid=1000",
    "process '/home/u/{P}' started with executable stack", "EXT4-fs error (device loop{N}): ext4_lookup:{N}: inode #2: comm {P}: bad",
    "EXT4-fs (loop{N}): Remounting filesystem read-only", "I/O error, dev loop{N}, sector {N} op 0x0:(READ) flags 0x0",
});
// clang-format on

constexpr std::array<std::uint32_t, 16> xids{13, 31, 43, 45, 48,  63,  64,  74,
                                             79, 92, 94, 95, 119, 145, 154, 999};

}  // namespace

std::size_t fault_lines::kinds() { return patterns.size(); }

// At most 15 bytes, as the kernel keeps them.
std::string fault_lines::name(bool hostile) {
    static constexpr std::array<const char*, 6> honest{"python3", "a.out", "my job, v2",
                                                       "x) y",    "[w:1]", "tar: -"};
    if (!hostile) return honest[below(honest.size())];
    if (below(3) == 0) {
        const std::string begin = patterns[below(static_cast<std::uint32_t>(patterns.size()))].text;
        drawn unused;
        return filled(begin, unused).substr(0, 1 + below(15));
    }
    std::string out;
    for (auto n = 1 + below(15); n > 0; --n) out += static_cast<char>(below(4) == 0 ? '\n' : 32 + below(95));
    return out;
}

std::string fault_lines::filled(std::string_view text, drawn& out) {
    std::string made;
    while (!text.empty()) {
        if (text.starts_with("{{") || text.starts_with("}}")) {
            // "{{{N}}}": a brace, a number, a brace
            made += text.front();
            text.remove_prefix(2);
        } else if (text.size() > 2 && text[0] == '{' && text[2] == '}') {
            switch (text[1]) {
                case 'B':
                case 'G':
                    out.bdf = fmt::format("{:04x}:{:02x}:{:02x}", below(2), below(256), below(32));
                    made += out.bdf + (text[1] == 'B' ? ".0" : "");
                    break;
                case 'D': {
                    static constexpr std::array<const char*, 5> disks{"nvme0n1", "nvme3n1p2", "sda", "sdb1",
                                                                      "vda1"};
                    made += disks[below(disks.size())];
                    break;
                }
                case 'N':
                    made += std::to_string(below(200));
                    break;
                case 'S':
                    made += fmt::format("{:06}", below(1'000'000));
                    break;
                case 'X':
                    made += fmt::format("{:x}", 0x1000 + below(0x7fffffff));
                    break;
                case 'P':
                    made += name(false);
                    break;
                default:
                    out.code = xids[below(xids.size())];
                    made += std::to_string(*out.code);
            }
            text.remove_prefix(3);
        } else {
            made += text.front();
            text.remove_prefix(1);
        }
    }
    return made;
}

// As one of the ways in which the kernel's lines are kept.
std::string fault_lines::headed(std::string text, log_format& format) {
    const auto host = fmt::format("gpu{:04}", below(300));
    switch (below(8)) {
        case 0:
            return fmt::format("{},{},{},-;{}", below(8), below(100'000), below(1'000'000'000), text);
        case 1:
            return fmt::format("[{:5}.{:06}] {}", below(90'000), below(1'000'000), text);
        case 2:
            return fmt::format("<{}>[{:5}.{:06}] [ T{}] {}", below(8), below(90'000), below(1'000'000),
                               below(900), text);
        case 3:
            format = log_format::syslog;
            return fmt::format("Nov 21 02:00:{:02} {} kernel: [{:5}.{:06}] {}", below(60), host,
                               below(90'000), below(1'000'000), text);
        case 4:
            format = log_format::syslog;
            return fmt::format("2026-11-21T02:00:{:02}.{:06}+01:00 {} kernel: {}", below(60),
                               below(1'000'000), host, text);
        case 5:
            format = log_format::syslog;
            return fmt::format("<{}>1 2026-11-21T02:00:{:02}.{:06}Z {} kernel - - - {}", below(8), below(60),
                               below(1'000'000), host, text);
        case 6:
            format = log_format::json;
            return nlohmann::json{{"_TRANSPORT", "kernel"},
                                  {"_HOSTNAME", host},
                                  {"SYSLOG_FACILITY", "0"},
                                  {"__REALTIME_TIMESTAMP", "1700000000123456"},
                                  {"MESSAGE", text}}
                .dump();
        default:
            format = log_format::json;
            return nlohmann::json{{"date", 1.5},      {"priority", 3},     {"sequence", below(99)},
                                  {"sec", below(99)}, {"usec", below(99)}, {"msg", text},
                                  {"hostname", host}}
                .dump();
    }
}

drawn fault_lines::fault(std::size_t number) {
    const auto& p = patterns[number % patterns.size()];
    drawn out;
    out.kind = p.kind;
    out.format = p.format;
    auto text = filled(p.text, out);
    out.line = p.format == log_format::kmsg ? headed(std::move(text), out.format) : std::move(text);
    return out;
}

drawn fault_lines::ordinary(std::size_t number) {
    drawn out;
    auto text = filled(everyday[number % everyday.size()], out);
    out.line = headed(std::move(text), out.format);
    return out;
}

drawn fault_lines::provoked(std::size_t number) {
    drawn out;
    drawn unused;
    const auto fake = filled(patterns[below(static_cast<std::uint32_t>(patterns.size()))].text, unused);
    switch (number % 5) {
        case 0: {  // `logger -t kernel`, a job's output sent to syslog: in a file that is not the kernel's
                   // alone
            out.line = fmt::format("Nov 21 02:00:01 gpu7 kernel: {}", fake);
            out.format = log_format::kmsg;
            return out;
        }
        case 1:
            out.line = nlohmann::json{
                {"_TRANSPORT", below(2) ? "syslog" : "stdout"},
                {"SYSLOG_IDENTIFIER", "kernel"},
                {"SYSLOG_FACILITY", "0"},
                {"MESSAGE",
                 fake}}.dump();
            out.format = log_format::json;
            return out;
        case 2:  // root's writes to /dev/kmsg, which programs of administrators make
            out.line = fmt::format("{},1,2,-;{}", 8 + below(180), fake);
            return out;
        default: {
            std::string text = named[below(static_cast<std::uint32_t>(named.size()))];
            const auto at = text.find("{P}");
            if (at != std::string::npos) text = text.substr(0, at) + "\x01" + text.substr(at + 3);
            text = filled(text, unused);
            if (const auto mark = text.find('\x01'); mark != std::string::npos)
                text.replace(mark, 1, name(true));
            std::string escaped;
            for (const char c : text) escaped += c == '\n' ? std::string("\\x0a") : std::string(1, c);
            out.line = "6,1,2,-;" + escaped;
            return out;
        }
    }
}

}  // namespace banyan::fault::testing
