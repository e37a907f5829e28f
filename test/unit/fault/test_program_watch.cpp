// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's logs of programs: what a user can write into them, and what stands in their place.
#include <fstream>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/agent/program_watch.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_program_watch {

using namespace banyan;
using namespace banyan::fault;

namespace {

struct seen {
    kernel_fault fault;
    std::string stream;
    std::uint32_t job = 0;
};

class bench {
  public:
    banyan::testing::held_run time;
    std::filesystem::path dir = banyan::testing::scratch_path("programs");
    config settings = load_config({}, "n03").value();
    std::vector<seen> found;
    asio::io_context io;

    bench() {
        std::filesystem::remove_all(dir);
        std::filesystem::create_directories(dir / "proc" / "4242");
        settings.root = dir.string();
        std::ofstream(dir / "proc/4242/cgroup")
            << "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n";
    }
    ~bench() { std::filesystem::remove_all(dir); }
    program_watch watch() {
        return program_watch(io, settings,
                             [this](kernel_fault fault, const log_line& line, std::uint32_t job) {
                                 found.push_back({std::move(fault), std::string(line.stream), job});
                             });
    }
    bool wait(std::size_t count) {
        time.until(io, [&] { return found.size() >= count; });
        return found.size() == count;
    }
    void write(const std::string& name, const std::string& text) {
        std::ofstream(dir / name, std::ios::app) << text;
    }
};

std::string nccl(const std::string& host, const std::string& pid = "4242") {
    return host + ":" + pid +
           ":1 [0] transport/net_ib.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<2> "
           "with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_3";
}
log_line line(const std::string& text) { return {text, "s", 0, clock::wall_ms()}; }

const std::string sxid =
    "[Jul 09 2024 18:14:07] [ERROR] [tid 7] detected NVSwitch fatal error 12028 on fid 0 on NVSwitch pci bus "
    "id "
    "00000000:86:00.0 physical id 3 port 61\n";

}  // namespace

TEST_CASE("a warning of NCCL accuses its own user's job", "[fault]") {
    bench b;
    auto w = b.watch();
    w.nccl(line(nccl("n03")), ::geteuid());
    REQUIRE(b.found.size() == 1);
    CHECK(b.found[0].job == 42);
    CHECK(b.found[0].fault.device == "mlx5_3");
    // Another user's process: the line counts, and accuses nobody by name.
    w.nccl(line(nccl("n03")), ::geteuid() + 1);
    REQUIRE(b.found.size() == 2);
    CHECK(b.found[1].job == 0);
    // A process that is gone, and another host's line in a file that many write to.
    w.nccl(line(nccl("n03", "4294967295")), ::geteuid());
    w.nccl(line(nccl("n04")), ::geteuid());
    w.nccl(line(nccl("n03.cluster")), ::geteuid());
    REQUIRE(b.found.size() == 4);
    CHECK(b.found[2].job == 0);
    CHECK(b.found[3].job == 42);
}

TEST_CASE("a user's flood of warnings is bounded", "[fault]") {
    bench b;
    auto w = b.watch();
    for (int n = 0; n < 10'000; ++n)
        w.nccl(
            line("n03:4242:1 [0] NCCL WARN NET/IB: Got completion from peer x hca dev" + std::to_string(n)),
            0);
    CHECK(b.found.size() == 32);
}

TEST_CASE("logs of programs are followed through rotation and truncation", "[fault]") {
    bench b;
    b.write("fm.log", sxid);  // what is there was told by the kernel
    b.settings.logs = {"fabric-manager:" + (b.dir / "fm.log").string(),
                       "nccl:" + (b.dir / "nccl-%n.log").string()};
    auto w = b.watch();
    w.start();
    b.io.poll();
    b.write("fm.log", sxid);
    REQUIRE(b.wait(1));
    CHECK(b.found[0].fault.bdf == "0000:86:00");
    CHECK(b.found[0].stream.starts_with("fabric-manager:"));
    std::filesystem::rename(b.dir / "fm.log", b.dir / "fm.log.1");
    b.write("fm.log", sxid);
    REQUIRE(b.wait(2));
    std::filesystem::resize_file(b.dir / "fm.log", 0);
    b.io.poll();
    b.write("fm.log", "x\n" + sxid);
    REQUIRE(b.wait(3));
    b.write("nccl-n03.log", nccl("n03") + "\n");
    REQUIRE(b.wait(4));
    CHECK(b.found[3].job == 42);
    CHECK(b.found[3].stream.starts_with("nccl:"));
}

TEST_CASE("what is no file of its owner's is not read, and nothing waits for it", "[fault]") {
    bench b;
    std::filesystem::create_directories(b.dir / "folder");
    REQUIRE(::mkfifo((b.dir / "fifo").c_str(), 0644) == 0);
    b.write("open", sxid);
    REQUIRE(::chmod((b.dir / "open").c_str(), 0666) == 0);
    for (const char* name : {"folder", "fifo", "open", "none/at/all", "fm.log"})
        b.settings.logs.push_back("fabric-manager:" + (b.dir / name).string());
    auto w = b.watch();
    w.start();
    b.io.poll();
    b.write("open", sxid);
    // A line of 64 MB, control characters, no end: then one that counts.
    {
        std::ofstream log(b.dir / "fm.log");
        const std::string part(1 << 20, '\x1b');
        for (int n = 0; n < 64; ++n) log << part;
        log << sxid << std::string(100, '\0') << sxid << "\x9b" << sxid << sxid;
    }
    REQUIRE(b.wait(1));
    CHECK(b.found[0].fault.code == 12028);
}

TEST_CASE("a log of no known format is told at the start", "[fault]") {
    const auto file = banyan::testing::scratch_path("logs.conf");
    const auto loads = [&](const std::string& logs) {
        std::ofstream(file) << "[fault]\nlogs = " << logs << "\n";
        return load_config(file, "n03");
    };
    CHECK(loads(R"(["nccl:/var/log/%n.log"])")->log_sources().front().path == "/var/log/n03.log");
    for (const char* wrong :
         {R"(["/var/log/x"])", R"(["dmesg:/var/log/x"])", R"(["nccl:relative"])", R"([""])", R"([":"])"}) {
        const auto read = loads(wrong);
        REQUIRE_FALSE(read);
        CHECK(read.error().text().find("nccl:/PATH") != std::string::npos);
    }
    std::string many = "[";
    for (int n = 0; n < 17; ++n) many += "\"nccl:/x\",";
    CHECK_FALSE(loads(many + "]"));
    std::filesystem::remove(file);
}

}  // namespace test_program_watch
