// SPDX-License-Identifier: BSD-3-Clause
//
// A controller over a fabric: logs that tell, a program that shows the fabric, one that asks the subnet
// manager. The programs are shell lines over files that the test writes.
#pragma once

#include <array>
#include <filesystem>
#include <fstream>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>

#include "fault/controller/controller.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/built.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fake_cluster.hpp"

namespace banyan::fault::testing {

using banyan::testing::held_run;

class fabric_bench {
  public:
    held_run time;
    std::filesystem::path dir = banyan::testing::scratch_path("fabric");
    fake_state slurm;
    config settings = load_config({}, "n00").value();
    policy rules = shipped_policy();
    std::shared_ptr<metrics> figures = std::make_shared<metrics>();
    asio::io_context io;
    asio::thread_pool pool{2};
    std::unique_ptr<controller> daemon;

    fabric_bench() {
        std::filesystem::remove_all(dir);
        std::filesystem::create_directories(dir);
        settings.bind = "127.0.0.1";
        settings.port = 0;
        settings.history = (dir / "history.db").string();
        settings.avoid = (dir / "avoid.links").string();
        settings.dry_run = false;
        settings.snapshot.clear();
        settings.opensm_log = (dir / "opensm.log").string();
        settings.ufm_log = (dir / "ufm.log").string();
        settings.fabric_dump_command = {"cat", (dir / "fabric").string()};
        settings.sm_probe_command = {
            "sh", "-c",
            "cat " + (dir / "sm").string() +
                " 2>/dev/null && exit 0; echo 'sminfo: iberror: failed: query' >&2; exit 255"};
        settings.sm_probe_grace = std::chrono::milliseconds(100);
        std::filesystem::copy_file(banyan::testing::fixture("ib/ibnetdiscover.txt"), dir / "fabric");
        say("opensm.log", "");
        say("ufm.log", "");
        master(1, "a1");
    }
    ~fabric_bench() {
        pool.join();
        daemon->finish();
        daemon.reset();
        std::filesystem::remove_all(dir);
    }
    void start() {
        daemon = std::make_unique<controller>(io, pool, settings, rules, figures,
                                              std::make_unique<fake_cluster>(slurm));
        REQUIRE(daemon->start());
        pass(std::chrono::milliseconds(300));
    }
    void say(const std::string& file, const std::string& line) {
        std::ofstream(dir / file, std::ios::app) << line << (line.empty() ? "" : "\n");
        // Now, which is held: the kernel would note its own time.
        const timespec now{clock::wall_ms() / 1'000, clock::wall_ms() % 1'000 * 1'000'000};
        const std::array both{now, now};
        REQUIRE(::utimensat(AT_FDCWD, (dir / file).c_str(), both.data(), 0) == 0);
    }
    void opensm(const std::string& text) {
        say("opensm.log", "Nov 23 05:37:03 592620 [DF24D740] 0x82 -> " + text);
    }
    void master(int lid, const std::string& guid) {
        std::ofstream(dir / "sm") << "sminfo: sm lid " << lid << " sm guid 0x" << guid
                                  << ", activity count 59 priority 5 state 3 SMINFO_MASTER\n";
    }
    void dead() { std::filesystem::remove(dir / "sm"); }
    /// Without the lines that hold `mark`.
    void without(const std::string& mark) {
        std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
        std::ofstream out(dir / "new");
        for (std::string line; std::getline(in, line);)
            if (line.find(mark) == std::string::npos) out << line << "\n";
        out.close();
        std::filesystem::rename(dir / "new", dir / "fabric");
    }
    bool until(const std::function<bool()>& so) { return time.until(io, so); }
    void pass(clock::duration some) { time.pass(io, some); }
    std::vector<incident> all() const {
        std::vector<incident> out;
        for (const auto& [number, i] : daemon->incidents().all()) out.push_back(i);
        return out;
    }
    bool has(std::size_t count, bool open) const {
        const auto now = all();
        return now.size() == count && (now.back().closed_ms == 0) == open &&
               (!open || now.back().state == incident_state::done);
    }
};

}  // namespace banyan::fault::testing
