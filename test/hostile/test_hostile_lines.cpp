// SPDX-License-Identifier: BSD-3-Clause
//
// Log lines that users can cause. They give no event, and text that users chose never changes what an honest
// line says.
#include <algorithm>
#include <fstream>
#include <random>

#include <catch2/catch.hpp>

#include "fault/event.hpp"
#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/kernel_log.hpp"
#include "fault/sources/opensm_log.hpp"
#include "test/built.hpp"

using namespace banyan::fault;

namespace {

std::vector<std::string> lines_of(const std::string& name) {
    std::ifstream in(banyan::testing::fixture("fault/") + name);
    REQUIRE(in.good());
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);)
        if (!line.starts_with('#')) out.push_back(line);
    REQUIRE(out.size() > 5);
    return out;
}

// A log and its parser, as an agent has them.
class reader {
  public:
    reader(kmsg_trust trust, bool device) : log_(trust, device) {}
    std::vector<kernel_fault> read(std::string_view raw) {
        std::vector<kernel_fault> out;
        refused = log_.read(raw,
                            [&](std::string_view text) {
                                auto found = parser_.line(text);
                                if (found.fault) out.push_back(std::move(*found.fault));
                                if (found.identity) ++identities;
                            })
                      .refused;
        return out;
    }
    bool refused = false;
    int identities = 0;

  private:
    kernel_log log_;
    kernel_parser parser_;
};

// An honest line tells of a job's memory or of a stuck processor, whatever its process is called: never of a
// GPU, and nothing that takes a node out.
bool accuses(const kernel_fault& fault) {
    return fault.kind != fault_kind::symptom || precedence_of(fault) >= precedence::reset;
}

void expect_nothing(const std::string& file, kmsg_trust trust, bool device) {
    reader r(trust, device);
    for (const auto& line : lines_of(file)) {
        CAPTURE(line);
        CHECK(std::ranges::none_of(r.read(line), accuses));
        CHECK(r.identities == 0);
    }
}

// As the kernel's devkmsg puts bytes into a record.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char raw : text) {
        const auto c = static_cast<unsigned char>(raw);
        if (c < ' ' || c >= 127 || c == '\\') {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\x%02x", c);
            out += hex;
        } else {
            out += raw;
        }
    }
    return out;
}

// What a user who knows the grammar would write, cut and mixed.
std::string chosen(std::mt19937& random, std::size_t most) {
    static const char* const parts[] = {"NVRM: ",
                                        "Xid (",
                                        "PCI:0000:10:00",
                                        "): 79, ",
                                        "SXid (",
                                        "pid=1, ",
                                        "name=",
                                        "GPU has fallen off the bus.",
                                        "\n",
                                        "\n",
                                        ", ",
                                        ", Ch 00",
                                        " to 0x1",
                                        " caused by previous Xid 79",
                                        "GPU recovery action changed from 0x0 (",
                                        ") to 0x2 (",
                                        "link 3",
                                        "[    1.000000] ",
                                        "2,1,2,-;",
                                        "<2>",
                                        "\\x0a",
                                        "nvidia-nvswitch0: ",
                                        "The NVIDIA GPU 0000:10:00.0",
                                        ": ",
                                        "x",
                                        "\x9b",
                                        "é",
                                        "NVRM: fallen off the bus",
                                        "(PCI ID: 1:2) installed in this system has",
                                        "GPU at PCI:0000:10:00: GPU-",
                                        "154",
                                        "Fatal, "};
    std::string out;
    for (auto n = random() % 12; n > 0; --n) out += parts[random() % std::size(parts)];
    if (random() % 4 == 0)
        for (auto n = random() % 4; n > 0; --n) out += static_cast<char>(1 + random() % 255);
    const auto from = out.empty() ? 0 : random() % (out.size() + 1);
    if (random() % 2 == 0) out.erase(0, from);
    out = out.substr(0, most);
    std::erase(out, '\0');
    return out;
}

std::string with(std::string form, const std::string& comm, const std::string& path) {
    for (auto at = form.find("%c"); at != std::string::npos; at = form.find("%c", at + comm.size()))
        form.replace(at, 2, comm);
    for (auto at = form.find("%p"); at != std::string::npos; at = form.find("%p", at + path.size()))
        form.replace(at, 2, path);
    return form;
}

const char* const templates[] = {
    "%c[4242]: segfault at 0 ip 000055 sp 00007f error 6 in %p[555555555000+1000]",
    "traps: %c[4242] general protection fault ip:5555 sp:7fff error:0 in %p[555555555000+1000]",
    "%c invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "Memory cgroup out of memory: Killed process 4242 (%c) total-vm:1kB",
    "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/slurm/uid_1000/job_7/%p,task=%c,pid=4242,uid=1000",
    "INFO: task %c:4242 blocked for more than 120 seconds.",
    "process '%p' started with executable stack",
    "audit: type=1326 audit(1.0:1): comm=\"%c\" exe=\"%p\" sig=31",
    "usb 1-1: Product: %p",
    "NVRM: API mismatch: the client has the version %p, but",
    "EXT4-fs (%p): mounted filesystem",
    "%c (4242): drop_caches: 3",
    "%c uses obsolete (PF_INET,SOCK_PACKET)",
};

}  // namespace

TEST_CASE("records of the device that users can cause are no faults", "[hostile]") {
    expect_nothing("hostile-kernel.log", kmsg_trust::kernel, true);
    expect_nothing("hostile-kernel.log", kmsg_trust::syslog, true);
    expect_nothing("hostile-kernel.log", kmsg_trust::kernel, false);
}

TEST_CASE("lines of files that users can cause are no faults", "[hostile]") {
    expect_nothing("hostile-file.log", kmsg_trust::kernel, false);
    expect_nothing("hostile-syslog.log", kmsg_trust::syslog, false);
    expect_nothing("hostile-syslog.log", kmsg_trust::kernel, false);
}

TEST_CASE("node descriptions are no changes of the fabric", "[hostile]") {
    opensm_parser parser;
    for (const auto& line : lines_of("hostile-opensm.log")) {
        CAPTURE(line);
        CHECK_FALSE(parser.line(line));
    }
}

TEST_CASE("whatever users call their programs, there is no event", "[hostile]") {
    std::mt19937 random(11);
    for (int n = 0; n < 60'000; ++n) {
        // As a record of the device, and as the lines that the old interface makes of it.
        const auto text = with(templates[static_cast<std::size_t>(n) % std::size(templates)],
                               chosen(random, 15), chosen(random, 64));
        reader device(kmsg_trust::kernel, true), file(kmsg_trust::kernel, false);
        const auto record = "6,1,2,-;" + escaped(text);
        CAPTURE(text);
        CHECK(std::ranges::none_of(device.read(record), accuses));
        CHECK(device.identities == 0);
        std::string rest = text;
        for (;;) {
            const auto end = rest.find('\n');
            CHECK(std::ranges::none_of(file.read("[   10.000001] " + rest.substr(0, end)), accuses));
            if (end == std::string::npos) break;
            rest.erase(0, end + 1);
        }
        CHECK(file.identities == 0);
    }
}

TEST_CASE("a process name changes nothing of an honest line", "[hostile]") {
    struct honest {
        const char* form;
        std::uint32_t code;
        std::optional<std::uint32_t> recovery, caused_by;
        std::optional<int> link;
    };
    const honest forms[] = {
        {"79, pid=7, name=%c, GPU has fallen off the bus.", 79, {}, {}, {}},
        {"13, pid=7, name=%c, Graphics SM Warp Exception on (GPC 1, TPC 0): Illegal", 13, {}, {}, {}},
        {"31, pid=7, name=%c, Ch 00000008, intr 10000000. MMU Fault", 31, {}, {}, {}},
        {"43, pid=7, name=%c, Ch 00000008", 43, {}, {}, {}},
        {"45, pid=7, name=%c, channel 0x00000008 caused by previous Xid 149", 45, {}, 149, {}},
        {"45, pid=7, name=%c, Ch 00000008", 45, {}, {}, {}},
        {"154, pid=7, name=%c, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
         154,
         2,
         {},
         {}},
        {"154, pid=7, name=%c, GPU recovery action changed from 0x2 (Reboot) to 0x0 (None)", 154, 0, {}, {}},
        {"74, pid=7, name=%c, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000)", 74, {}, {}, 14},
        {"94, pid=7, name=%c, Contained: CE User Channel (0x9). RST: No, D-RST: No", 94, {}, {}, {}},
        {"145, pid=7, name=%c, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x1 0x2)", 145, {}, {}, 12},
    };
    std::mt19937 random(12);
    for (int n = 0; n < 60'000; ++n) {
        const auto& f = forms[static_cast<std::size_t>(n) % std::size(forms)];
        auto name = chosen(random, 15);
        const auto text = "NVRM: Xid (PCI:0000:5d:00): " + with(f.form, name, "");
        reader device(kmsg_trust::kernel, true);
        const auto got = device.read("2,1,2,-;" + escaped(text));
        CAPTURE(text);
        REQUIRE(got.size() == 1);
        CHECK(got[0].kind == fault_kind::xid);
        CHECK(got[0].code == f.code);
        CHECK(got[0].bdf == "0000:5d:00");
        // A line feed cuts the line: what it would have said is missing then, never another.
        if (name.find('\n') == std::string::npos) {
            CHECK(got[0].recovery == f.recovery);
            CHECK(got[0].caused_by == f.caused_by);
            CHECK(got[0].link == f.link);
        } else {
            CHECK((!got[0].recovery || got[0].recovery == f.recovery));
            CHECK((!got[0].caused_by || got[0].caused_by == f.caused_by));
        }
    }
}

TEST_CASE("what the kernel says is believed in every form", "[hostile]") {
    const std::string said = "NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=a, GPU has fallen off the bus.";
    const auto count = [&](kmsg_trust trust, bool device, const std::string& line) {
        reader r(trust, device);
        return r.read(line).size();
    };
    for (const std::string head : {"2,1,2,-;", "6,1,2,-,caller=T77;"}) {
        CHECK(count(kmsg_trust::kernel, true, head + said) == 1);
        CHECK(count(kmsg_trust::kernel, false, head + said) == 1);
    }
    for (const std::string head : {"[    1.234567] ", "[12345.678901] [ T1946] ", "[1.234567] [C3] ",
                                   "<2>[    1.234567] ", "[Fri Nov 21 02:00:01 2026] ", "<6>"})
        CHECK(count(kmsg_trust::kernel, false, head + said) == 1);
    for (const std::string head :
         {"Nov 21 02:00:01 gpu7 kernel: ", "Nov  1 02:00:01 gpu7 kernel: [    1.234567] ",
          "2026-11-21T02:00:01.123456+01:00 gpu7 kernel: ",
          "2026-11-21T02:00:01Z gpu7 kernel: [  1.234567] [ T9] ", "[    1.234567] gpu7 kernel: "}) {
        CHECK(count(kmsg_trust::syslog, false, head + said) == 1);
        reader strict(kmsg_trust::kernel, false);
        CHECK(strict.read(head + said).empty());
        CHECK(strict.refused);  // said once by the agent: an administrator must learn of it
    }
    CHECK(count(kmsg_trust::injected, false, said) == 1);
    CHECK(count(kmsg_trust::injected, true, "10,1,2,-;" + said) == 1);
    CHECK(count(kmsg_trust::injected, true, "30,1,2,-;" + said) == 0);
}

TEST_CASE("two faults of one microsecond, and one message of three lines", "[hostile]") {
    reader file(kmsg_trust::kernel, false);
    CHECK(file.read("[    1.000001] NVRM: Xid (PCI:0000:5d:00): 79, x").size() == 1);
    CHECK(file.read("[    1.000001] NVRM: Xid (PCI:0000:5e:00): 79, x").size() == 1);
    CHECK(file.read("[    1.000002] NVRM: The NVIDIA GPU 0000:9a:00.0").empty());
    CHECK(file.read("[    1.000002] NVRM: (PCI ID: 10de:2330) installed in this system has").empty());
    CHECK(file.read("[    1.000002] NVRM: fallen off the bus and is not responding to commands.").size() ==
          1);
    reader device(kmsg_trust::kernel, true);
    const auto lost = device.read(
        "3,1,2,-;NVRM: The NVIDIA GPU 0000:9a:00.0\\x0aNVRM: (PCI ID: 10de:2330) installed in this system "
        "has\\x0aNVRM: fallen off the bus and is not responding to commands.");
    REQUIRE(lost.size() == 1);
    CHECK(lost[0].bdf == "0000:9a:00");
}
