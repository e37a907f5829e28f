// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include <catch2/catch.hpp>

#include "scratch_folder.hpp"
#include "sweep/checks.hpp"
#include "sweep/clock.hpp"
#include "sweep/disks.hpp"
#include "sweep/memory.hpp"
#include "sweep/mounts.hpp"

namespace test_checks {

using namespace banyan::sweep;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr const char* mountinfo =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:30 / /home rw shared:2 master:7 - autofs systemd-1 rw,fd=29\n"
    "31 30 0:31 / /home rw - nfs4 server:/home rw\n"
    "32 22 0:32 / /data rw - autofs systemd-1 rw,fd=30\n"
    "33 22 0:33 / /with\\040blank\\012and\\134line rw - tmpfs a\\040b rw\n"
    "34 22 0:34 / /half rw shared:2\n"
    "garbage\n\n"
    "35 22 0:35 / /cut rw -";

finding judged(const std::string& point, int answer = 0) {
    return judge_mount(point, parse_mountinfo(mountinfo), answer);
}

}  // namespace

TEST_CASE("a mount point is mounted where the kernel says so", "[sweep]") {
    CHECK(parse_mountinfo(mountinfo).size() == 5);
    CHECK(parse_mountinfo("").empty());
    CHECK(judged("/").is == verdict::fit);
    CHECK(judged("/home").what.front() == "/home is mounted (nfs4)");
    CHECK(judged("/home/").is == verdict::fit);
    CHECK(judged("//home//.").is == verdict::fit);
    CHECK(judged("/with blank\nand\\line").is == verdict::fit);
    CHECK(judged("/hom").is == verdict::unfit);
    CHECK(judged("/home/user").is == verdict::unfit);
    CHECK(judged("/half").is == verdict::unfit);
}

TEST_CASE("an automounter that waits is no mount", "[sweep]") {
    CHECK(judged("/data").is == verdict::unfit);
    CHECK(judged("/data").what.front().find("automounter") != std::string::npos);
}

TEST_CASE("a mount that answers with an error is unfit, one that we may not see is not known", "[sweep]") {
    CHECK(judged("/home", ESTALE).is == verdict::unfit);
    CHECK(judged("/home", ENOTCONN).what.front().find("Transport endpoint") != std::string::npos);
    CHECK(judged("/home", EACCES).is == verdict::unknown);
    CHECK(judged("/nothing", ENOENT).what.front() == "/nothing is not mounted");
    CHECK(check_mount("/", "/proc").is == verdict::fit);
    CHECK(check_mount("/", "/proc/self").is == verdict::unfit);
    const scratch root;  // without /proc: the mount was looked at, and what it is cannot be known
    CHECK(check_mount(root.path, "/proc").is == verdict::unknown);
}

namespace {

constexpr const char* nodes_mounts =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "31 22 0:31 / /home rw - nfs4 server:/home rw\n"
    "32 22 8:2 / /scratch rw - xfs /dev/sdb1 rw\n"
    "33 22 8:3 / /broken rw - ext4 /dev/sdc1 ro\n"
    "34 22 8:4 / /images ro - ext4 /dev/sdd1 rw\n";
/// As with ProtectSystem=strict and ProtectHome=yes.
constexpr const char* services_mounts =
    "122 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "131 122 0:31 / /home ro - nfs4 server:/home rw\n"
    "132 122 8:2 / /scratch ro - xfs /dev/sdb1 rw\n"
    "133 122 8:3 / /broken ro - ext4 /dev/sdc1 ro\n"
    "134 122 8:4 / /images ro - ext4 /dev/sdd1 rw\n"
    "135 131 0:26 /systemd/inaccessible/dir /home ro,nosuid - tmpfs tmpfs rw,mode=755\n";

void link_to(const scratch& root, const std::string& name, const std::string& to) {
    std::filesystem::create_directories((root.path / name).parent_path());
    std::filesystem::create_symlink(to, root.path / name);
}

}  // namespace

TEST_CASE("what only a service cannot write to is not known to be read-only", "[sweep]") {
    mounts_seen seen{parse_mountinfo(services_mounts), false, parse_mountinfo(nodes_mounts)};
    CHECK(is_read_only_here_alone(seen, "/scratch"));
    CHECK(is_read_only_here_alone(seen, "/scratch/job/7"));
    CHECK(is_read_only_here_alone(seen, "/scratches"));
    CHECK_FALSE(is_read_only_here_alone(seen, "/images"));
    // An error has made it so, for everybody.
    CHECK_FALSE(is_read_only_here_alone(seen, "/broken/x"));
    seen.of_1.reset();  // who is in a sandbox may not look, either
    CHECK(is_read_only_here_alone(seen, "/scratch"));
    CHECK(is_read_only_here_alone(seen, "/images"));
    CHECK_FALSE(is_read_only_here_alone(seen, "/broken/x"));
    seen.nodes = true;
    CHECK_FALSE(is_read_only_here_alone(seen, "/scratch"));
}

TEST_CASE("what is hidden from a service is not known to be mounted, nor not to be", "[sweep]") {
    mounts_seen seen{parse_mountinfo(services_mounts), false, parse_mountinfo(nodes_mounts)};
    CHECK(is_hidden_here(seen, "/home"));
    CHECK_FALSE(is_hidden_here(seen, "/scratch"));
    CHECK_FALSE(is_hidden_here(seen, "/nowhere"));
    std::erase_if(seen.own, [](const auto& m) { return m.point == "/scratch"; });
    CHECK(is_hidden_here(seen, "/scratch"));
    seen.of_1.reset();
    CHECK(is_hidden_here(seen, "/home"));
    CHECK_FALSE(is_hidden_here(seen, "/scratch"));
}

TEST_CASE("whose mounts we have is seen by the namespace", "[sweep]") {
    const scratch root;
    root.write("proc/self/mountinfo", services_mounts);
    SECTION("the node's") {
        link_to(root, "proc/self/ns/mnt", "mnt:[4026531841]");
        link_to(root, "proc/1/ns/mnt", "mnt:[4026531841]");
        CHECK(look_at_mounts(root.path)->nodes);
    }
    SECTION("our own") {
        root.write("proc/1/mountinfo", nodes_mounts);
        link_to(root, "proc/self/ns/mnt", "mnt:[4026532101]");
        link_to(root, "proc/1/ns/mnt", "mnt:[4026531841]");
        const auto seen = look_at_mounts(root.path);
        CHECK_FALSE(seen->nodes);
        CHECK(seen->of_1->size() == 5);
        CHECK(check_mount(root.path, "/home").is == verdict::unknown);
        CHECK(check_mount(root.path, "/home").what.front().find("hidden") != std::string::npos);
    }
    SECTION("which we may not see") {
        link_to(root, "proc/self/ns/mnt", "mnt:[4026532101]");
        const auto seen = look_at_mounts(root.path);
        CHECK_FALSE(seen->nodes);
        CHECK_FALSE(seen->of_1);
    }
}

TEST_CASE("a disk is judged as df shows it", "[sweep]") {
    const disk_limits limits{90, 80};
    disk_view v{{}, 0, 1000, 200, 100, 100, 30};
    CHECK(judge_disk("/d", v, limits).is == verdict::fit);  // 800 of 900: 89 %
    v.blocks_free = 180, v.blocks_for_users = 80;           // 820 of 900: 91.1 %
    CHECK(judge_disk("/d", v, limits).what.front() == "/d is 92 % full, at most 90 % expected");
    v.blocks_for_users = 1000, v.inodes_free = 19;
    CHECK(judge_disk("/d", v, limits).is == verdict::unfit);
    v.inodes = v.inodes_free = 0;  // btrfs counts none
    CHECK(judge_disk("/d", v, limits).is == verdict::fit);
    CHECK(judge_disk("/d", {{}, 0, 0, 0, 0, 0, 0}, limits).is == verdict::fit);
    CHECK(judge_disk("/d", {{}, 0, 10, 20, 20, 1, 2}, limits).is == verdict::fit);
    CHECK(judge_disk("/d", {{}, 0, UINT64_MAX, 0, 0, UINT64_MAX, 1}, limits).is == verdict::unfit);
}

TEST_CASE("a folder that takes no file is unfit, one that is not ours is not known", "[sweep]") {
    for (const int why : {EROFS, ENOSPC, EDQUOT, EIO, ENOENT, ESTALE, ENOTDIR})
        CHECK(judge_disk("/d", {"write", why, 0, 0, 0, 0, 0}, {}).is == verdict::unfit);
    for (const int why : {EACCES, EPERM})
        CHECK(judge_disk("/d", {"make a file", why, 0, 0, 0, 0, 0}, {}).is == verdict::unknown);
    const scratch here;
    CHECK(look_at_disk(here.path).failed_with == 0);
    CHECK(std::filesystem::is_empty(here.path));
    CHECK(look_at_disk(here.path / "none").failed_with == ENOENT);
    CHECK(look_at_disk(here.write("file", "")).failed_with == ENOTDIR);
    CHECK(look_at_disk("/proc").failed_with != 0);
}

TEST_CASE("the clock is synchronised, and near enough", "[sweep]") {
    const milliseconds limit(100);
    CHECK(judge_clock({true, microseconds(100'000), microseconds(500'000)}, limit).is == verdict::fit);
    CHECK(judge_clock({true, microseconds(100'001), microseconds(0)}, limit).is == verdict::unfit);
    CHECK(judge_clock({false, microseconds(0), microseconds(0)}, limit).is == verdict::unfit);
    CHECK(look_at_clock());
}

TEST_CASE("memory is what the kernel calls available", "[sweep]") {
    const auto text = "MemTotal:  100 kB\nMemAvailable:   64 kB\nMemAvailableX: 9 kB\n";
    CHECK(meminfo_bytes(text, "MemAvailable").value() == 65'536);
    CHECK(judge_memory(65'536, 65'536).is == verdict::fit);
    CHECK(judge_memory(65'535, 65'536).is == verdict::unfit);
    for (const auto* bad : {"", "MemAvailable:", "MemAvailable: -1 kB",
                            "MemAvailable: 99999999999999999999 kB", "XMemAvailable: 1 kB", "MemAvailable"})
        CHECK(!meminfo_bytes(bad, "MemAvailable"));
    CHECK(available_memory("/"));
}

TEST_CASE("only what is asked for is looked at, and never nothing", "[sweep]") {
    settings s;
    CHECK(!choose(s, {}));
    s.links = 8, s.memory = 1;
    CHECK(choose(s, {}).value().size() == 2);
    CHECK(choose(s, {"memory", "memory"}).value().size() == 1);
    CHECK(choose(s, {"mounts"}).error().hint == "set mounts in [sweep] of banyan.conf");
    CHECK(!choose(s, {"link"}));
    CHECK(choose(s, {"\x1b[2J"}).error().what.find('\x1b') == std::string::npos);
    CHECK(!choose(s, {""}));
}

TEST_CASE("[sweep] is read as strictly as the other tables", "[sweep]") {
    const scratch files;
    const auto load = [&](const std::string& text) { return load_settings(files.write("c", text), "n01"); };
    CHECK(load("")->disk_fill == 95);
    const auto s =
        load("[sweep]\nlinks = 8\nmounts = [\"/a b\"]\ndisks = []\ntopology = \"/g/%n\"\nclock = \"1s\"\n");
    REQUIRE(s);
    CHECK(s->links == 8);
    CHECK(s->mounts == std::vector<std::string>{"/a b"});
    CHECK(s->topology == "/g/n01");
    for (const auto* bad :
         {"links = -1", "links = \"8\"", "mounts = [\"a\"]", "mounts = [\"\"]", "mounts = \"/a\"",
          "disks = [1]", "disk_fill = 101", "link = 8", "memory = 8", "disks = [\"/a\\u0000\"]"})
        CHECK(!load(std::string("[sweep]\n") + bad));
    std::string many = "[sweep]\nmounts = [";
    for (int i = 0; i < 129; ++i) many += "\"/a\",";
    CHECK(!load(many + "]"));
}

}  // namespace test_checks
