# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table (scenario.py) about logs other than the kernel's: those of the subnet manager, UFM, the fabric manager and NCCL."""

from log_moves import fabric_manager, manager_names, nccl, ufm_says
from moves import kernel, kill_rank, link_down
from scenario import GONE, XID_79, Scenario

FABRIC_MANAGER = "detected NVSwitch {} error {} on fid 0 on NVSwitch pci bus id 00000000:05:00.0 physical id 3 port 30"
NCCL_NETWORK = "transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_1:1 Got async event : port error"
NCCL_CUDA = "enqueue.cc:12 NCCL WARN Cuda failure 'an illegal memory access was encountered'"
WENT_DOWN = "Link went down: {ends}"

# The cables of these rows are not those of scenarios.py: one that breaks again is the incident of before.
LOGS = (
    Scenario("the manager names a port", 1, ((manager_names, "uplink 13"),), (("link", "-", "fabric-link", "alert"),), "untouched",
             sources=("opensm",)),
    Scenario("the manager names a port, again and again", 1, ((manager_names, "uplink 14", {"times": 20}),),
             (("link", "-", "fabric-link", "alert"),), "untouched", sources=("opensm",)),
    Scenario("ufm: a link", 1, ((link_down, "uplink 15"), (ufm_says, "uplink 15", 329, "WARNING", WENT_DOWN)),
             (("link", "-", "fabric-link", "alert"),), "untouched", sources=("ufm",)),
    Scenario("ufm: a link, and a GPU", 1, ((ufm_says, "uplink 16", 329, "WARNING", WENT_DOWN), (kernel, "r2", XID_79)),
             (("link", "-", "fabric-link", "alert"), ("gpu", "r2", GONE, "down")), "swap", sources=("ufm",)),
    Scenario("ufm: bit errors", 1, ((ufm_says, "uplink 17", 917, "CRITICAL", "Symbol BER high"),) * 3,
             (("link", "-", "fabric-errors", "alert"),), "untouched", sources=("ufm",)),
    Scenario("ufm: what it says of itself", 1, ((ufm_says, "uplink 18", 65, "INFO", "GID in service"),), (), "untouched"),
    Scenario("fabric manager: fatal", 1, ((fabric_manager, "r2", FABRIC_MANAGER.format("fatal", 20034)),),
             (("switch", "r2", "nvswitch", "alert"),), "untouched"),
    Scenario("fabric manager: not fatal", 1, ((fabric_manager, "r3", FABRIC_MANAGER.format("non-fatal", 12028)),),
             (("switch", "r3", "nvswitch", "log"),), "untouched"),
    Scenario("the kernel and the fabric manager", 1,
             ((kernel, "r4", "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"),
              (fabric_manager, "r4", FABRIC_MANAGER.format("fatal", 20034))),
             (("switch", "r4", "nvswitch", "alert"),), "untouched"),
    Scenario("nccl: the network", 1, ((nccl, "r2", *[NCCL_NETWORK] * 30),), (("node", "r2", "job-nccl", "log"),), "untouched"),
    Scenario("nccl: cuda, and a rank ends", 1, ((nccl, "r2", NCCL_CUDA), (kill_rank, "r2")), (("node", "r2", "job-nccl", "log"),), "in place"),
    Scenario("nccl, and a GPU", 1, ((nccl, "r2", NCCL_CUDA), (kernel, "r2", XID_79)),
             (("node", "r2", "job-nccl", "log"), ("gpu", "r2", GONE, "down")), "swap"),
)
