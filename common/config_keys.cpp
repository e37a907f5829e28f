// SPDX-License-Identifier: BSD-3-Clause
#include "common/config_keys.hpp"

#include <algorithm>
#include <array>

namespace banyan {
namespace {

using enum config_type;

constexpr std::array tables{
    config_table{
        "munge",
        "Read by banyan-ckptd(8) and banyan-faultd(8), and, for the plans of jobs, by slurmctld, the "
        "prolog (spank_banyan(8)) and banyan-topo(1)."},
    config_table{"peers", "Read by banyan-ckptd(8) and banyan-faultd(8)."},
    config_table{"topo",
                 "Read by slurmctld (select_cons_tres_banyan(8)), which writes to its log what is wrong in "
                 "this table, and by banyan-topo(1) and banyan-faultd(8), which take snapshot, avoid, names "
                 "and site alone."},
    config_table{"ckptd",
                 "Read by banyan-ckptd(8); socket also by banyan-ckpt(1), banyan-run(1), spank_banyan(8) and "
                 "the agent of banyan-faultd(8)."},
    config_table{"fault", "Read by banyan-faultd(8) and banyan-fault(1)."},
    config_table{
        "sweep",
        "Read by banyan-sweep(8). What a node is held to: a check is done where the key of its name is "
        "set, and by default none is."},
};

constexpr std::string_view log_levels = "trace debug info warn error off";

// clang-format off
constexpr std::array keys{
    config_key{"munge", "socket", path, R"("")", "munged's socket; empty for munge's own default."},

    config_key{"peers", "encrypt", flag, "false",
               "What goes between the daemons of two nodes is always authenticated, frame by frame, under keys of that one connection. "
               "With true it is encrypted, too, and it is so where either of the two daemons wants it."},

    config_key{"topo", "snapshot", path, R"("/var/lib/banyan/fabric.snapshot")",
               "The fabric snapshot, which banyan-topo(1) writes; slurmctld does not replace %n. "
               "slurmctld sees a new one within a second, the fault daemon at its start."},
    config_key{"topo", "avoid", path, R"("/var/lib/banyan/avoid.links")",
               "The list of links that are up and that new jobs are kept off, which the fault daemon's controller writes by its policy "
               "(action \"avoid\") and nobody else; slurmctld sees a new one within a second. Empty: none is read, and none written."},
    config_key{"topo", "names", path, R"("")",
               "The node names of the fabric, where they are not those of slurm.conf: lines of a host and its node (\"rack1-07 gpu0001\"), "
               "or a node-name map, as the InfiniBand tools take it (lines of GUID and quoted name). For each reading of a dump that has no --names. Empty: the descriptions in the fabric."},
    config_key{"topo", "site", path, R"("")",
               "What only the site knows of its fabric, as banyan-topo(1) describes it (SITE FILE). For each reading of a dump that has no "
               "--site. Empty: nothing."},
    config_key{"topo", "max_age", duration, R"("168h")",
               "An older snapshot is not believed: jobs run where cons_tres has them, with their ranks in Slurm's order, and slurmctld's log says so. "
               "\"0s\" for any age."},

    config_key{"ckptd", "socket", path, R"("/run/banyan/ckptd.sock")", "The daemon's socket for the ranks of this node."},
    config_key{"ckptd", "bind", text, R"("*")",
               "The address, or the name, under which the daemons of other nodes reach this one; * is all addresses, IPv6 and IPv4. "
               "Of a name all addresses are served. "
               "A host's own name that /etc/hosts gives a loopback address alone stands for all of the host's. "
               "A daemon that the prolog starts binds to the node's address in Slurm (NodeAddr) instead."},
    config_key{"ckptd", "port", number, "571",
               "The TCP port for that, the same on all nodes. "
               "A port below 1024 cannot be taken by a user while no daemon has it.", 1, 65535},
    config_key{"ckptd", "retention", duration, R"("10m")",
               "How long a job's checkpoints stay in memory after the job left the node; a requeued job finds them there."},
    config_key{"ckptd", "commit_warning_after", duration, R"("30s")",
               "When a step lacks the shards of some nodes for longer than this, the user is told which."},
    config_key{"ckptd", "restore_timeout", duration, R"("5m")",
               "When a node does not answer for longer than this while the ranks wait for their state, they get an error. "
               "So they do when a node has no memory for a checkpoint that is there, or cannot read it from storage for now, storage does "
               "not answer, or a node of an earlier run has what is missing of a step that is known to be replicated: "
               "no older one is taken instead. \"0s\" for no limit."},
    config_key{"ckptd", "memory_limit", size, R"("64G")", "The most memory that checkpoints may take on a node."},
    config_key{"ckptd", "job_memory_limit", size, R"("0")",
               "The most of it that one job's ranks may take on a node, with the copies that the node keeps for other nodes counted, "
               "and all states of the job together (bck_open). 0 for all of memory_limit."},
    config_key{"ckptd", "huge_pages", choice, R"("auto")",
               "auto: checkpoints lie in huge pages where there are: in those of 2 MiB that are reserved (vm.nr_hugepages) where enough "
               "are free and rounding up costs 3 percent at most, else in transparent ones where the kernel gives such to shared memory "
               "(/sys/kernel/mm/transparent_hugepage/shmem_enabled is advise, within_size or always), else in ordinary ones. "
               "The log says which, and why. off: in ordinary pages.", 0, 0, "auto off"},
    config_key{"ckptd", "keep", number, "2", "How many committed steps stay in a job's directory, beside milestones.", 1, 1000},
    config_key{"ckptd", "threads", number, "2",
               "Threads of each user for checksums and memory, and as many for the data of other nodes.", 1, 64},
    config_key{"ckptd", "storage_threads", number, "2",
               "Threads of each user for storage. "
               "They are his alone: storage that does not answer delays nothing else of his and nothing of other users. "
               "Threads exist only while there is work for them.", 1, 64},
    config_key{"ckptd", "metrics", node_text, R"("")", "ADDRESS:PORT on which to answer to Prometheus; empty for none."},
    config_key{"ckptd", "log_level", choice, R"("info")", "How much the daemon logs.", 0, 0, log_levels},

    config_key{"fault", "controller", text, R"("localhost")", "The host of the controller, where the agents find it."},
    config_key{"fault", "port", number, "572", "The controller's TCP port.", 1, 65535},
    config_key{"fault", "bind", text, R"("*")",
               "The address on which the controller listens for agents, a name of its host, or * for all addresses, IPv6 and IPv4."},
    config_key{"fault", "socket", path, R"("/run/banyan/faultd.sock")", "The controller's socket for banyan-fault(1)."},
    config_key{"fault", "agent_socket", path, R"("/run/banyan/faultd-agent.sock")",
               "The agent's socket, where slurmstepd and banyan-ckptd(8) tell what befell a job on the node. Root's alone."},
    config_key{"fault", "dry_run", flag, "true",
               "true: say what would be done, and do nothing. "
               "Look at what banyan-fault(1) lists for a week, then set it to false."},
    config_key{"fault", "history", path, R"("/var/lib/banyan/incidents.db")", "The database of every incident ever seen."},
    config_key{"fault", "policy", path, R"("")",
               "The rules by which the controller decides what is done about an incident; see banyan-fault(1). "
               "Empty: the shipped ones, which are in /usr/share/banyan/banyan-policy.toml, to be copied and changed. "
               "The controller does not start with a file that is wrong. It reads it again at SIGHUP, and goes on with what it has where the "
               "file is wrong then."},
    config_key{"fault", "opensm_log", path, R"("")",
               "The log of opensm(8) on the controller's host. "
               "Start opensm with -d2 or set force_log_flush TRUE, or its lines come late. "
               "Empty, and ufm_log as well: the fabric is not watched."},
    config_key{"fault", "ufm_log", path, R"("")",
               "UFM's event log on the controller's host, beside opensm_log or instead of it. Empty: it is not read."},
    config_key{"fault", "kmsg", path, R"("/dev/kmsg")",
               "Where the agent reads the kernel log: the device, or a file that is appended to. "
               "The device is safer: in a file a line feed in a program's name may look like a new line. "
               "A file that everybody may write is not read."},
    config_key{"fault", "kmsg_trust", choice, R"("kernel")",
               "What of the kernel log is believed; each includes the one before. "
               "kernel: records of facility kern, of the device or in a file with their heads (4,1234,5678901,-; TEXT) "
               "or the kernel's time stamps (\"[  123.456789] \" TEXT), as dmesg(1) prints them. "
               "syslog: also lines of a file that begin with a date, a host and \"kernel:\", which any user can write with "
               "logger(1) unless the file receives facility kern and nothing else. "
               "injected: also what root writes to the device, and lines without any head: for drills.",
               0, 0, "kernel syslog injected"},
    config_key{"fault", "root", path, R"("/")",
               "The root under which the agent looks for proc/driver/nvidia and sys/class/infiniband."},
    config_key{"fault", "hca_events", flag, "true",
               "Whether the agent listens to what the node's HCAs tell by libibverbs: a device that failed, a port that went down or came "
               "up. It keeps /dev/infiniband/uverbs* open for that."},
    config_key{"fault", "hca_poll_interval", duration, R"("30s")",
               "How often the agent reads the error counters of the node's HCAs. \"0s\" for never."},
    config_key{"fault", "hca_counters", list,
               R"(["symbol_error:120/1h", "link_error_recovery:5/1m", "link_downed:2/1h", "port_rcv_errors:600/1m", )"
               R"("local_link_integrity_errors:0/1h", "excessive_buffer_overrun_errors:0/1h"])",
               "How many errors of a port are too many, each as COUNTER:MORE_THAN/TIME with a time from 1s to 24h, 64 at most. "
               "The counters are files of /sys/class/infiniband/DEVICE/ports/N/counters or, where it has none of that name, of hw_counters. "
               "A counter beyond its limit is an event of that HCA."},
    config_key{"fault", "gpu_poll_interval", duration, R"("20s")",
               "How often the agent asks NVIDIA's library how the GPUs are, shorter than correlation_window at best, so that what the kernel and the "
               "library both tell is one incident. Where nvidia-persistenced does not run the driver starts anew for it each time. "
               "\"0s\" for never."},
    config_key{"fault", "logs", list, R"([])",
               "Logs of programs that the agent reads beside the kernel's, each as FORMAT:PATH: \"fabric-manager:/var/log/fabricmanager.log\" "
               "for NVIDIA's fabric manager, \"nccl:PATH\" for a file with NCCL's warnings, such as NCCL_DEBUG_FILE names it; of a file "
               "that several hosts write to, each takes its own lines. "
               "Jobs write NCCL's warnings themselves: these accuse only the job whose process they name, when the file is its user's."},
    config_key{"fault", "fabric_dump_command", list, R"(["ibnetdiscover"])",
               "The program with its arguments that reads the fabric after a change; its output is that of ibnetdiscover(8).", 1},
    config_key{"fault", "sm_probe_command", list, R"(["sminfo"])",
               "The program with its arguments that asks whether the subnet manager answers; its output is that of sminfo(8). "
               "[] for none."},
    config_key{"fault", "sm_probe_grace", duration, R"("10s")",
               "How long no subnet manager answers before that is told, as after a restart of it."},
    config_key{"fault", "metrics", node_text, R"("")", "ADDRESS:PORT on which to answer to Prometheus; empty for none."},
    config_key{"fault", "correlation_window", duration, R"("30s")", "Events of one cause within this time are one incident."},
    config_key{"fault", "seal_timeout", duration, R"("300ms")",
               "How long the job's nodes may take to seal the newest step before the culprit is taken out."},
    config_key{"fault", "fabric_dump_timeout", duration, R"("10s")", "How long one reading of the fabric may take."},
    config_key{"fault", "fabric_debounce", duration, R"("25ms")",
               "How long, after a line of opensm's log that tells of a change, to wait for the line that says that its sweep is over "
               "before the fabric is read."},
    config_key{"fault", "drains_per_hour", number, "8",
               "The most nodes that are taken out within an hour, each counted once. 0 for none. Nodes beyond it follow when the hour "
               "has room for them.", 0, 1'000'000},
    config_key{"fault", "drains_percent", number, "2",
               "The most, as a share of the cluster's nodes, where that is more than drains_per_hour.", 0, 100},
    config_key{"fault", "breaker_percent", number, "50",
               "When within breaker_window this share of the cluster's nodes is to go out, but at least three and never more than an "
               "hour may bring, the circuit breaker opens and no further node is taken out until it is closed.", 1, 100},
    config_key{"fault", "breaker_window", duration, R"("5m")", "See breaker_percent."},
    config_key{"fault", "max_event_age", duration, R"("10m")",
               "An event that comes later than this is recorded but not acted on."},

    config_key{"fault", "avoid_percent", number, "25",
               "New jobs are kept off at most this share of a switch's links of one direction (up, down, to hosts), but off one at least. "
               "0 for none.", 0, 100},
    config_key{"fault", "avoid_for", duration, R"("24h")",
               "New jobs are kept off a link until it was well for so long."},

    config_key{"sweep", "links", number, "0", "How many InfiniBand ports have to be active.", 0, 4096},
    config_key{"sweep", "link_rate", number, "0", "In Gb/s: a port that is slower does not count as active. 0 for any.", 0, 100'000},
    config_key{"sweep", "gpus", number, "0", "How many GPUs the driver has to have.", 0, 4096},
    config_key{"sweep", "gpu_ecc", flag, "true",
               "Whether a GPU with memory errors that were not corrected, since its driver was loaded, makes the node unfit. "
               "false where the GPUs have no ECC."},
    config_key{"sweep", "topology", path, R"("")",
               "The file that banyan-sweep(8) wrote with --write-topology on a node that is well: what it has and this node lacks makes "
               "the node unfit."},
    config_key{"sweep", "mounts", list, "[]", "Mount points that have to be mounted, 128 at most."},
    config_key{"sweep", "disks", list, "[]", "Folders that have to take a file, on file systems with space left, 128 at most. "
               "Not where users have no quota: one who fills such a file system makes the node unfit."},
    config_key{"sweep", "disk_fill", number, "95", "The share of such a file system that may be full, in percent.", 1, 100},
    config_key{"sweep", "disk_inodes", number, "95", "The share of its inodes that may be used, in percent.", 1, 100},
    config_key{"sweep", "clock", duration, R"("0s")",
               "The clock has to be synchronised, with an estimated error of this at most; by the kernel's word, which ntpd, chronyd "
               "with rtcsync and systemd-timesyncd set, and phc2sys does not."},
    config_key{"sweep", "memory", size, R"("0")",
               "The memory that has to be available, such as memory_limit in [ckptd]. Looked at while no job runs on the node."},
    config_key{"sweep", "bandwidth", number, "0",
               "The memory bandwidth in GB/s (10^9 bytes) that all CPUs together have to reach in a triad as STREAM has it. Measured "
               "while no job runs on the node.", 0, 1'000'000},
    config_key{"sweep", "pcie", number, "0",
               "The bandwidth in GB/s (10^9 bytes) that each GPU has to reach in copies from host memory, and in copies back. Measured "
               "while no job runs on the node.", 0, 1'000'000},
    config_key{"sweep", "allreduce", number, "0",
               "The bus bandwidth in GB/s (10^9 bytes) that an all-reduce by NCCL over the node's GPUs has to reach; its sums are checked. "
               "Left out on a node with one GPU. Measured while no job runs on the node.", 0, 1'000'000},
    config_key{"sweep", "baseline", path, R"("")",
               "What banyan-sweep(8) printed with --json on a node that is well: bandwidths that are measured here are held to those, too."},
    config_key{"sweep", "baseline_percent", number, "90",
               "The share of such a bandwidth that has to be reached, in percent.", 1, 100},
};
// clang-format on

}  // namespace

std::span<const config_table> config_tables() { return tables; }
std::span<const config_key> config_keys() { return keys; }

const config_key* find_config_key(std::string_view table, std::string_view name) {
    const auto it =
        std::ranges::find_if(keys, [&](const config_key& k) { return k.table == table && k.name == name; });
    return it == keys.end() ? nullptr : &*it;
}

}  // namespace banyan
