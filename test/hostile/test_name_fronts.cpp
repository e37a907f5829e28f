// SPDX-License-Identifier: BSD-3-Clause
//
// A process is named like the front of a fault, its program like the rest: whatever the kernel prints of
// both, no recogniser of faults takes it for one. All that there are have to pass.
#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include "fault/catalog/symptom.hpp"
#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/kernel_log.hpp"
#include "fault/sources/process_names.hpp"
#include "fault/sources/symptom_lines.hpp"
#include "test/built.hpp"

namespace test_name_fronts {

using namespace banyan::fault;

namespace {

// Linux, all architectures: c is the name of a process, of a network device or of what else a user makes, p
// the name of a file, a cgroup, a mount or a device's text.
const char* const forms[] = {
    "%c[42]: segfault at 0 ip 0000000000401136 sp 00007ffc error 6 in %p[116b,401000+1000] likely on CPU 1 "
    "(core 1, socket 0)",
    "%c[42]: segfault at 0 ip 0 sp 0 error 6 in %p",
    "%c[42]: segfault (11) at 0 nip 10000 lr 10000 code 1 in %p[10000000+10000]",
    "%c[42]: unhandled signal 11 code 0x1 at 0x0 in %p[10000+1000]",
    "%c[42]: unhandled exception: DABT (lower EL), ESR 0x92000045, level 1 translation fault in %p[400000+1]",
    "%c[42]: undefined instruction: pc=0000000000400000 in %p",
    "%c[42] bad frame in rt_sigreturn frame:0 ip:0 sp:0 orax:f in %p[400000+1000]",
    "%c[42] general protection fault ip:7f sp:7f error:0 in %p[7f+1000]",
    "%c[42] trap int3 ip:7f sp:7f error:0 in %p[7f+1000]",
    "%c[42] vsyscall attempted with vsyscall=none ip:ffffffffff600000 cs:33 sp:7ffc ax:0 si:0 di:0 in %p",
    "%c[42]: bad usage of ptrace in %p",
    "traps: %c[42] trap divide error ip:7f sp:7f error:0 in %p[7f+1000]",
    "%c: 42: potentially unexpected fatal signal 11.",
    "%c: potentially unexpected fatal signal 11.",
    "potentially unexpected fatal signal 11. %c",
    "%c invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=%p,mems_allowed=0,oom_memcg=/"
    "%p,task=%c,pid=4",
    "oom_reaper: reaped process 42 (%c), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "%p,mems_allowed=0,oom_memcg=/user.slice,task_memcg=/user.slice,task=x,pid=42,uid=4105",
    "%c: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null),cpuset=%p",
    "%c: vmalloc error: size 4096, page order 0, failed to allocate pages, mode:0xcc0,cpuset=%p",
    "%c: vmap allocation for size 4096 failed: use vmalloc=<size> to increase size",
    "%c (42) used greatest stack depth: 10 bytes left",
    "%c (42): drop_caches: 3",
    "%c (42): /proc/42/oom_adj is deprecated, please use /proc/42/oom_score_adj instead.",
    "%c/42 is trying to acquire lock:",
    "%c(42): Attempt to set a LOCK_MAND lock via flock(2). This support has been removed in %p",
    "%c uses obsolete (PF_INET,SOCK_PACKET)",
    "%c uses 32-bit capabilities (legacy support in use)",
    "warning: `%c' uses deprecated v2 capabilities in a way that may be insecure",
    "process '%p' started with executable stack",
    "process `%c' used the deprecated sysctl system call",
    "CPU: 3 PID: 42 Comm: %c Not tainted 6.1.0-18-amd64 #1",
    "Process 42(%c) has RLIMIT_CORE set to 1",
    "Core dump to %p pipe failed",
    "coredump: 42(%c): over core_pipe_limit, skipping core dump",
    "mmap: %c (42): VmData 4198400 exceed data ulimit 4194304. Update limits or use boot option",
    "ptrace attach of \"%p\"[42] was attempted by \"%p\"[43]",
    "audit: type=1326 audit(1.0:1): auid=1 uid=1 gid=1 ses=1 pid=42 comm=\"%c\" exe=\"%p\" sig=31 "
    "arch=c000003e",
    "audit: type=1701 audit(1.0:1): auid=1 uid=1 gid=1 ses=1 pid=42 comm=\"%c\" exe=\"%p\" sig=11 res=1",
    "cgroup: fork rejected by pids controller in /%p",
    "Memory cgroup stats for /%p:",
    "Tasks in /%p are going to be killed due to memory.oom.group set",
    "usb 1-1: Product: %p",
    "input: %p as /devices/virtual/input/input7",
    "%n: renamed from %n",
    "%n: entered promiscuous mode",
    "%n: left allmulticast mode",
    "%n: port 1(%n) entered blocking state",
    "device %n entered promiscuous mode",
    "NETDEV WATCHDOG: %n (tun): transmit queue 0 timed out",
    "EXT4-fs (loop0): mounted filesystem %p r/w with ordered data mode. Quota mode: none.",
    "overlayfs: upperdir is in-use as upperdir/workdir of another mount: %p",
    "BTRFS: device label %p devid 1 transid 5 /dev/loop0",
    "fuse: Bad value for '%p'",
    "scsi 0:0:0:0: Direct-Access     %p PQ: 0 ANSI: 4",
};

// Each text that a recogniser is to believe.
std::vector<std::string> faults() {
    std::ifstream in(banyan::testing::fixture("fault/symptoms.log"));
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) out.push_back(line.substr(line.find("] ") + 2));
    for (const char* text : {"NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off the bus.",
                             "NVRM: Xid (10:00): 79, GPU has fallen off the bus.",
                             "NVRM: GPU 0000:10:00.0: GPU has fallen off the bus.",
                             "NVRM: GPU 5d:00: GPU has fallen off the bus.",
                             "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 26006, Fatal, Link 03 SOE HALTED",
                             "nvme sda: I/O 1 QID 4 timeout, aborting",
                             "EDAC MC1: 2 UE memory read error on DIMM_A1 (page:0x0 offset:0x0 grain:64)"})
        out.emplace_back(text);
    return out;
}

std::string filled(std::string form, const std::map<char, std::string>& with) {
    for (std::size_t at = 0; (at = form.find('%', at)) != std::string::npos;) {
        const auto& text = with.at(form[at + 1]);
        form.replace(at, 2, text);
        at += text.size();
    }
    return form;
}

// As a network device may be called.
std::string one_word(std::string name) {
    std::erase_if(name, [](char c) { return c == ' ' || c == ':' || c == '/'; });
    return name.empty() ? "x" : name;
}

std::optional<kernel_fault> read_record(const std::string& text) {
    kernel_log log(kmsg_trust::kernel, true);
    kernel_parser parser;
    std::optional<kernel_fault> out;
    log.read("6,1,2,-;" + text, [&](std::string_view said) {
        auto found = parser.line(said);
        if (found.fault) out = std::move(found.fault);
    });
    return out;
}

/// What a program may be called: a fault whole, and from each of its words on. A file's name holds no slash.
std::vector<std::string> rests_of(std::string fault) {
    std::erase(fault, '/');
    fault = fault.substr(0, 255);
    std::vector<std::string> out{fault};
    for (std::size_t at = 4; at < fault.size(); ++at)
        if (fault[at - 1] == ' ' || at == 15) out.push_back(fault.substr(at));
    return out;
}

}  // namespace

TEST_CASE("no record that begins with a name, or holds one, is a fault", "[hostile]") {
    for (const auto& fault : faults())
        for (const std::string form : forms) {
            const bool named = form.find("%c") != form.npos || form.find("%n") != form.npos;
            const auto texts = form.find("%p") != form.npos ? rests_of(fault) : std::vector<std::string>{""};
            for (std::size_t n = 4; n <= (named ? 15U : 4U); ++n)
                for (const auto& rest : texts) {
                    const auto name = fault.substr(0, n);
                    const auto text = filled(form, {{'c', name}, {'p', rest}, {'n', one_word(name)}});
                    if (read_record(text)) FAIL_CHECK(text);
                }
        }
}

TEST_CASE("what continues a record is no fault, whatever it begins with", "[hostile]") {
    for (const auto trust : {kmsg_trust::kernel, kmsg_trust::syslog, kmsg_trust::injected})
        for (const bool device : {true, false})
            for (const auto& fault : faults()) {
                kernel_log log(trust, device);
                const auto said = [&](std::string_view) { FAIL_CHECK(fault); };
                CHECK(log.read("4,2288244,25338264750,c;" + fault, said).refused);
                log.read("4,2288244,25338264750,+,caller=T42;" + fault + ",mems_allowed=0", said);
            }
}

TEST_CASE("each recogniser is asked, and believes the kernel", "[hostile]") {
    const auto all = faults();
    for (const auto& one : recognisers()) {
        CAPTURE(one.family);
        CHECK(std::ranges::count_if(all, [&](const auto& text) { return one.read(text).has_value(); }) > 3);
    }
    for (const auto& text : all) {
        CAPTURE(text);
        CHECK(read_record(text));
        CHECK_FALSE(may_begin_with_a_name(text));
    }
}

TEST_CASE("no recogniser leaves room for a user's text behind 15 bytes", "[hostile]") {
    // Without the gate before them: each form is the kernel's own beyond what a name may hold.
    for (const auto& fault : faults())
        for (std::size_t n = 4; n <= 15; ++n)
            for (const auto& rest : rests_of(fault))
                for (const std::string between : {"[42]: segfault at 0 ip 0 sp 0 error 6 in ",
                                                  "[42] bad frame in rt_sigreturn frame:0 ip:0 in "}) {
                    const auto text = fault.substr(0, n) + between + rest + "[400000+1000]";
                    for (const auto& one : recognisers())
                        if (one.read(text)) FAIL_CHECK(std::string(one.family) + ": " + text);
                }
}

TEST_CASE("what a site calls its file server takes no line of it away", "[hostile]") {
    for (const char* server : {"nas01", "fs-1", "nas-2", "nfs-01", "10.0.0.7", "[fe80::1]"}) {
        CAPTURE(server);
        CHECK(read_record(std::string("nfs: server ") + server + " not responding, still trying"));
    }
}

TEST_CASE("what a user calls his process takes no honest line away", "[hostile]") {
    for (const char* name :
         {"[12]", "x[12]: segfault", "(3)", "a:5 b", "/77 ", " uses ", "a bad frame in "}) {
        const auto hung =
            read_record(std::string("INFO: task ") + name + ":42 blocked for more than 120 seconds.");
        CAPTURE(name);
        REQUIRE(hung);
        CHECK(hung->code == static_cast<std::uint32_t>(catalog::symptom::hung_task));
        CHECK(read_record(std::string("NVRM: Xid (PCI:0000:5d:00): 79, pid=7, name=") + name +
                          ", GPU has fallen off the bus."));
        CHECK(read_record(std::string("Out of memory: Killed process 42 (") + name + ") total-vm:1kB"));
    }
}

}  // namespace test_name_fronts
