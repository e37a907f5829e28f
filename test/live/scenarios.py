# SPDX-License-Identifier: BSD-3-Clause
"""The table: what happens to a job that trains, who is to blame, what is done about it, and what becomes of the job. What a row says:
scenario.py. What other logs than the kernel's tell: log_scenarios.py."""

from log_scenarios import LOGS
from moves import (administrator_drains, end, end_opensm, everywhere, flap, hang, host_comes_back, kernel, kill_ckptd, kill_rank, leaf_ends,
                   link_down, pause, power_off, repair, requeue, start, trains_without)
from scenario import (GONE, RESET, XID_13, XID_31, XID_43, XID_45, XID_48, XID_79, XID_94, XID_95, Scenario, heard, node_lost, verdict,
                      xid)

BUG_AT = 60  # the training step at which a job with a bug ends

# One fault that takes the node away: of the GPU, and of any other part.
LOSSES = (
    node_lost("xid 79", 1, XID_79, GONE, quick=True),
    node_lost("xid 79, two spares", 2, XID_79, GONE, quick=True),
    node_lost("xid 79, three spares", 3, XID_79, GONE),
    node_lost("xid 79, four spares", 4, XID_79, GONE),
    node_lost("xid 79, no spare", 0, XID_79, GONE),
    node_lost("bus loss without a number", 1, "NVRM: GPU 0000:13:00.0: GPU has fallen off the bus.", GONE),
    node_lost("bus loss in one sentence", 2, "NVRM: The NVIDIA GPU 0000:13:00.0 (PCI ID: 10de:2330) installed in this system has fallen off "
              "the bus and is not responding to commands.", GONE),
    Scenario("bus loss in three lines", 1, ((kernel, "r2", "NVRM: The NVIDIA GPU 0000:13:00.0",
             "NVRM: (PCI ID: 10de:2330) installed in this system has", "NVRM: fallen off the bus and is not responding to commands."),),
             (("gpu", "r2", GONE, "down"),), "swap"),
    node_lost("154: reboot", 2, verdict(2, "Node Reboot Required"), "gpu-reboot"),
    node_lost("xid 48", 1, XID_48, RESET, quick=True),
    node_lost("xid 62", 2, xid("62, pid=77, name=python3, 0a4f 7e"), RESET),
    node_lost("xid 64", 3, xid("64, pid=77, Row Remapper: failed"), RESET),
    node_lost("xid 95", 4, XID_95, RESET, quick=True),
    node_lost("xid 95, no spare", 0, XID_95, RESET, quick=True),
    node_lost("xid 109", 1, xid("109, pid=77, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x1c002"), RESET),
    node_lost("xid 119", 2, xid("119, pid=77, name=python3, Timeout after 6s of waiting for RPC response from GPU3 GSP!"), RESET, quick=True),
    node_lost("xid 120", 1, xid("120, pid=77, name=python3, GSP task exception"), RESET),
    node_lost("xid 140", 1, xid("140, pid=77, name=python3, Unrecovered ECC error escape"), RESET),
    node_lost("xid 143", 1, xid("143, pid=77, name=python3, GPU Initialization Failure"), RESET),
    node_lost("xid 158", 1, xid("158, pid=77, name=python3, GPU fatal timeout"), RESET),
    node_lost("154: reset", 1, verdict(1, "GPU Reset Required"), RESET, quick=True),
    node_lost("154: drain and reset", 2, verdict(4, "Drain and Reset"), RESET),
    node_lost("hca: firmware", 1, "mlx5_core 0000:3b:00.0: poll_health:855:(pid 0): device's health compromised - reached miss count",
              "hca-health", "hca"),
    node_lost("hca: no answer", 2, "mlx5_core 0000:03:00.0: wait_func:964:(pid 112): ENABLE_HCA(0x104) timeout. Will cause a leak of a "
              "command resource", "hca-health", "hca"),
    node_lost("pcie: fatal", 1, "pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: id=00e0", "pcie", "node"),
    node_lost("pcie: lost, no spare", 0, "pcieport 0000:00:01.1: AER: device recovery failed", "pcie", "node"),
    node_lost("machine check", 1, "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00000000100402", "memory", "node"),
    node_lost("memory: uncorrected", 2, "EDAC MC1: 2 UE on mc#1csrow#0channel#0 (csrow:0 channel:0 page:0x0 offset:0x0 grain:64)", "memory",
              "node"),
    node_lost("firmware: fatal", 1, "{1}[Hardware Error]: event severity: fatal", "memory", "node"),
    node_lost("disk lost", 1, "nvme nvme0: Removing after probe failure status: -19", "disk", "node"),
    node_lost("file system read-only", 1, "EXT4-fs (sda2): Remounting filesystem read-only", "file-system", "node"),
)

XID_119_OF_ANOTHER = xid("119, pid=77, name=python3, Timeout after 6s of waiting for RPC response from GPU5 GSP!", 5)

# What a person should look at, what is known and harmless, and what speaks of the application.
WORDS = (
    heard("xid 74", 1, xid("74, pid=77, name=python3, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"),
          ("gpu", "r2", "gpu-nvlink", "alert")),
    heard("xid 149", 1, xid("149, pid=77, name=python3, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0)"),
          ("gpu", "r2", "gpu-nvlink", "alert")),
    heard("an unknown xid", 1, xid("999, a brand new thing"), ("gpu", "r2", "gpu-unknown", "alert")),
    heard("154: drain P2P", 1, verdict(3, "Drain P2P"), ("gpu", "r2", "gpu-alert", "alert")),
    heard("sxid, fatal", 1, "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
          ("switch", "r2", "nvswitch", "alert"), quick=True),
    heard("sxid, engine halted", 1, "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 26006, SOE HALTED", ("switch", "r2", "nvswitch", "alert")),
    heard("sxid, not fatal", 1, "nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
          ("switch", "r2", "nvswitch", "log")),
    heard("hca: cable", 1, "mlx5_core 0000:5c:00.0: Port module event: module 0, Cable unplugged", ("hca", "r2", "hca-alert", "alert")),
    heard("soft lockup", 1, "watchdog: BUG: soft lockup - CPU#5 stuck for 22s! [python:77]", ("node", "r2", "kernel", "alert")),
    heard("disk late", 1, "nvme nvme0: I/O 832 QID 3 timeout, reset controller", ("node", "r2", "disk", "alert")),
    heard("file system damaged", 1, "EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm bash: reading directory lblock 0",
          ("node", "r2", "file-system", "alert")),
    heard("gpu does not start", 1, "NVRM: GPU 0000:15:00.0: RmInitAdapter failed! (0x26:0xffff:1482)", ("gpu", "r2", "gpu-alert", "alert")),
    heard("xid 63", 1, xid("63, pid=77, Row Remapper: New row marked for remapping, reset gpu to activate."), ("gpu", "r2", "gpu-note", "log")),
    heard("xid 92", 1, xid("92, pid=77, name=python3, High single-bit ECC error rate"), ("gpu", "r2", "gpu-note", "log")),
    heard("pcie: corrected", 1, "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:02:00.0", ("node", "r2", "pcie", "log")),
    heard("memory: corrected", 1, "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x3e5a1 "
          "offset:0x0 grain:32 syndrome:0x0)", ("node", "r2", "memory", "log")),
    heard("file server away", 1, "nfs: server nas01 not responding, still trying", ("node", "r2", "file-system", "log")),
    heard("xid 13", 1, XID_13, ("gpu", "r2", "gpu-app", "log")),
    heard("xid 31", 1, XID_31, ("gpu", "r2", "gpu-app", "log")),
    heard("xid 94", 1, XID_94, ("gpu", "r2", "gpu-app", "log")),
    heard("out of memory", 1, "Memory cgroup out of memory: Killed process 42 (python) total-vm:1kB, anon-rss:1kB",
          ("node", "r2", "job-memory", "log")),
    heard("a user's line", 1, "python[77]: " + XID_79, None),
    Scenario("a storm of application xids", 1, ((everywhere, XID_31, XID_13, XID_45, XID_43, {"times": 50}),),
             tuple(("gpu", who, "gpu-app", "log") for who in ("script", *(f"r{n}" for n in range(1, 8)))), "untouched", quick=True),
)

# Parts that end under a job, and come back.
DAEMONS = (
    Scenario("the agent ends", 1, ((end, "agent r2"), (pause, 1), (start, "agent r2")), (), "untouched"),
    Scenario("agent and slurmd end", 1, ((end, "agent r2", "slurmd r2"), (pause, 0.3), (start, "slurmd r2", "agent r2")), (), "untouched"),
    Scenario("the checkpoint daemon ends", 1, ((kill_ckptd, "r2"),), (), "untouched"),
    Scenario("two checkpoint daemons end", 1, ((kill_ckptd, "r2", "r5"),), (), "untouched"),
    Scenario("slurmctld restarts", 1, ((end, "slurmctld"), (pause, 2), (start, "slurmctld")), (), "untouched"),
    Scenario("the controller restarts", 1, ((end, "faultd"), (pause, 1), (start, "faultd")), (), "untouched"),
)

# Each has cables of its own: one that breaks again is the incident of before.
FABRIC = (
    Scenario("a link to a spine", 1, ((link_down, "uplink 3"),), (("link", "-", "fabric-link", "alert"),), "untouched"),
    Scenario("two links to spines", 1, ((link_down, "uplink 11"), (link_down, "uplink 20")),
             (("link", "-", "fabric-link", "alert"),) * 2, "untouched"),
    Scenario("a link that flaps", 1, ((flap, "uplink 5"),), (("link", "-", "fabric-link", "avoid"),), "untouched", quick=True),
    Scenario("a host's link", 1, ((link_down, "hca r2 3"),), (("hca", "r2", "host-link", "seal"),), "untouched"),
    Scenario("a host's link that flaps", 1, ((flap, "hca r3 2"),), (("hca", "r3", "host-link", "avoid"),), "untouched"),
    Scenario("all links of a host", 1, ((link_down, "host r4"),), (("node", "r4", "host-lost", "seal"),), "untouched"),
    Scenario("a host comes back, one link after the other", 1, ((host_comes_back, "r5"),), (("node", "r5", "host-lost", "seal"),),
             "untouched"),
    Scenario("a leaf switch", 1, ((leaf_ends, 2),), (("switch", "-", "fabric-switch", "alert"),), "untouched"),
    Scenario("a link, and a GPU", 1, ((link_down, "uplink 7"), (kernel, "r2", XID_79)),
             (("link", "-", "fabric-link", "alert"), ("gpu", "r2", GONE, "down")), "swap"),
    Scenario("a host's link, and its GPU", 1, ((link_down, "hca r2 6"), (kernel, "r2", XID_79)),
             (("hca", "r2", "host-link", "seal"), ("gpu", "r2", GONE, "down")), "swap"),
)

TWO = (("gpu", "r2", GONE, "down"), ("gpu", "r5", GONE, "down"))
RANKS = (
    Scenario("a rank is killed", 0, ((kill_rank, "r2"),), (), "in place", quick=True),
    Scenario("ranks on two nodes are killed", 1, ((kill_rank, "r2", "r5"),), (), "in place"),
    Scenario("a rank is killed, and again", 0, ((kill_rank, "r2"), (trains_without,), (kill_rank, "r3")), (), "in place", lost=2),
    Scenario("application xids, and a rank ends", 1, ((kernel, "r2", XID_31, XID_45), (kill_rank, "r2")), (("gpu", "r2", "gpu-app", "log"),),
             "in place"),
    Scenario("its own bug", 0, (), (), "stopped", bug=True, quick=True),
    Scenario("its own bug, with application xids", 1, ((kernel, "r2", XID_31),), (("gpu", "r2", "gpu-app", "log"),), "stopped", bug=True),
    Scenario("its own bug, after a GPU", 1, ((kernel, "r2", XID_79),), (("gpu", "r2", GONE, "down"),), "stopped", bug=True),
)

ON_ONE_NODE = (
    Scenario("48, and what follows from it", 1, ((kernel, "r2", XID_48, XID_94, XID_45, XID_43),), (("gpu", "r2", RESET, "down"),), "swap"),
    Scenario("an application xid, then 79", 1, ((kernel, "r2", XID_13, XID_31), (kernel, "r2", XID_79)), (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("a storm that ends in a verdict", 1, ((kernel, "r2", *[XID_95] * 200, verdict(2, "Node Reboot Required")),),
             (("gpu", "r2", "gpu-reboot", "down"),), "swap"),
    Scenario("two GPUs of a node, each its own fault", 2, ((kernel, "r2", XID_95, XID_119_OF_ANOTHER),),
             (("gpu", "r2", RESET, "down"),) * 2, "swap"),
    Scenario("the same GPU, again and late", 1, ((kernel, "r2", XID_79), (trains_without, "r2"), (pause, 32), (kernel, "r2", XID_79)),
             (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("a node that an administrator had drained: 79", 1, ((administrator_drains, "r2"), (kernel, "r2", XID_79)),
             (("gpu", "r2", GONE, "down"),), "swap", quick=True),
    Scenario("a node that an administrator had drained: 95", 2, ((administrator_drains, "r2"), (kernel, "r2", XID_95)),
             (("gpu", "r2", RESET, "down"),), "swap", quick=True),
    Scenario("slurmstepd hangs on the node", 1, ((hang, "r2"), (kernel, "r2", XID_79)), (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("slurmstepd hangs on another node", 2, ((hang, "r5"), (kernel, "r2", XID_79)),
             (("gpu", "r2", GONE, "down"), ("node", "r5", "node-stuck", "down")), "swap", lost=2),
    Scenario("a GPU of a node outside the job", 1, ((kernel, "i1", XID_79),), (("gpu", "i1", GONE, "down"),), "untouched"),
    Scenario("the spare's GPU", 1, ((kernel, "s1", XID_79),), (("gpu", "s1", GONE, "down"),), "untouched"),
)

SILENCE = (
    Scenario("a node dies", 1, ((power_off, "r2"),), (("node", "r2", "node-silent", "down"),), "swap", quick=True),
    Scenario("a node dies, no spare", 0, ((power_off, "r2"),), (("node", "r2", "node-silent", "down"),), "requeue"),
    Scenario("the spare dies", 1, ((power_off, "s1"),), (("node", "s1", "node-silent", "down"),), "untouched"),
    Scenario("the node of the script dies", 1, ((power_off, "script"),), (("node", "script", "node-silent", "down"),), "requeue"),
    Scenario("two nodes die at once", 2, ((power_off, "r2"), (power_off, "r5")),
             (("node", "r2", "node-silent", "down"), ("node", "r5", "node-silent", "down")), "swap", lost=2),
)

SEVERAL = (
    Scenario("two at once, two spares", 2, ((kernel, "r2", XID_79), (kernel, "r5", XID_79)), TWO, "swap"),
    Scenario("two at once, one spare", 1, ((kernel, "r2", XID_79), (kernel, "r5", XID_79)), TWO, "requeue", lost=2),
    Scenario("three at once, three spares", 3, ((kernel, "r2", XID_79), (kernel, "r4", XID_95), (kernel, "r6", XID_79)),
             (("gpu", "r2", GONE, "down"), ("gpu", "r4", RESET, "down"), ("gpu", "r6", GONE, "down")), "swap", lost=3),
    Scenario("a second one during the recovery", 2, ((kernel, "r2", XID_79), (pause, 0.4), (kernel, "r5", XID_79)), TWO, "swap", lost=2),
    Scenario("a node dies during the recovery", 2, ((kernel, "r2", XID_79), (pause, 0.4), (power_off, "r5")),
             (("gpu", "r2", GONE, "down"), ("node", "r5", "node-silent", "down")), "swap", lost=2),
    Scenario("a rank is killed during the recovery", 1, ((kernel, "r2", XID_79), (trains_without, "r2"), (kill_rank, "r5")),
             (("gpu", "r2", GONE, "down"),), "swap", lost=2),
    Scenario("the spare dies when it has come in", 1, ((kernel, "r2", XID_79), (pause, 0.7), (kernel, "s1", XID_79)),
             (("gpu", "r2", GONE, "down"), ("gpu", "s1", GONE, "down")), "requeue", lost=2),
    Scenario("the spare first, then a node", 1, ((kernel, "s1", XID_79), (pause, 1), (kernel, "r2", XID_79)),
             (("gpu", "s1", GONE, "down"), ("gpu", "r2", GONE, "down")), "requeue", lost=2),
    Scenario("four, one after the other, four spares", 4, tuple(move for n in range(2, 6) for move in ((kernel, f"r{n}", XID_79),
             (trains_without, *(f"r{m}" for m in range(2, n + 1))))), tuple(("gpu", f"r{n}", GONE, "down") for n in range(2, 6)), "swap", lost=4,
             quick=True),
    Scenario("a repaired node comes back", 1, ((kernel, "r2", XID_79), (trains_without, "r2"), (repair, "r2"), (kernel, "r5", XID_79)), TWO,
             "requeue", lost=2, back=("r2",)),
    Scenario("three repaired nodes are back, and a fourth goes", 0, tuple(move for n in (2, 3, 4) for move in ((kernel, f"r{n}", XID_79),
             (trains_without, f"r{n}"), (repair, f"r{n}"))) + ((kernel, "r5", XID_79),),
             tuple(("gpu", f"r{n}", GONE, "down") for n in range(2, 6)), "requeue", lost=4, back=("r2", "r3", "r4")),
    Scenario("the node of the script: 79", 1, ((kernel, "script", XID_79),), (("gpu", "script", GONE, "down"),), "requeue"),
    Scenario("the node of the script: 95", 2, ((kernel, "script", XID_95),), (("gpu", "script", RESET, "down"),), "requeue"),
    Scenario("its user requeues it", 0, ((requeue,),), (), "requeue"),
)

IN_THE_MIDDLE = (
    Scenario("slurmctld is away at the fault", 1, ((end, "slurmctld"), (kernel, "r2", XID_79), (pause, 3), (start, "slurmctld")),
             (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("slurmctld restarts during the recovery", 1, ((kernel, "r2", XID_79), (pause, 0.2), (end, "slurmctld"), (pause, 1),
             (start, "slurmctld")), (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("the controller is killed in the middle", 1, ((kernel, "r2", XID_79), (pause, 0.01), (end, "faultd"), (pause, 1), (start, "faultd")),
             (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("the controller is away at the fault", 1, ((end, "faultd"), (kernel, "r2", XID_79), (pause, 1), (start, "faultd")),
             (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("controller and slurmctld are away", 2, ((end, "slurmctld", "faultd"), (kernel, "r2", XID_79), (pause, 1),
             (start, "slurmctld", "faultd")), (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("the agent is away at the fault", 1, ((end, "agent r2"), (kernel, "r2", XID_79), (pause, 1), (start, "agent r2")),
             (("gpu", "r2", GONE, "down"),), "swap"),
    Scenario("a checkpoint daemon ends with the fault", 1, ((kernel, "r2", XID_79), (kill_ckptd, "r5")), (("gpu", "r2", GONE, "down"),),
             "swap"),
)

SLOW_MANAGER = (
    Scenario("the subnet manager ends", 1, ((end_opensm,),), (("manager", "-", "subnet-manager", "alert"),), "untouched"),
)

SCENARIOS = WORDS + DAEMONS + FABRIC + LOGS + SLOW_MANAGER + LOSSES + RANKS + ON_ONE_NODE + SILENCE + SEVERAL + IN_THE_MIDDLE
