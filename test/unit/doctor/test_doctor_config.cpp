// SPDX-License-Identifier: BSD-3-Clause
//
// What an administrator gets wrong in banyan.conf and in the line of plugstack.conf, and what helps.
#include <catch2/catch.hpp>
#include <sys/stat.h>

#include "doctor/memory.hpp"
#include "doctor/site.hpp"
#include "scratch_folder.hpp"
#include "test/built.hpp"

namespace test_doctor_config {

using namespace banyan::doctor;

namespace {

/// A compute node whose files lie in a folder, all well.
struct node {
    folder here;
    std::filesystem::path conf, drop_in, plugstack, program;

    node() {
        std::filesystem::create_directories(here.path / "banyan.conf.d");
        std::filesystem::create_directories(here.path / "libexec");
        conf = here.write("banyan.conf", "[ckptd]\n");
        drop_in = here.write("banyan.conf.d/site.conf", "[fault]\ndry_run = false\n");
        program = here.write("libexec/banyan-ckptd", "#!/bin/sh\n");
        plugstack = line("");
        for (const auto& path : {here.path, here.path / "banyan.conf.d", here.path / "libexec", program})
            set(path, 0755);
        for (const auto& file : {conf, drop_in, plugstack}) set(file, 0644);
    }
    static void set(const std::filesystem::path& path, mode_t mode) {
        REQUIRE(::chmod(path.c_str(), mode) == 0);
    }
    std::filesystem::path line(const std::string& more) const {
        return here.write("plugstack.conf", "optional spank_banyan.so config=" + conf.string() +
                                                " ckptd=" + program.string() + more + "\n");
    }
    site look() const {
        slurm_config slurm{
            {"PlugStackConfig", plugstack.string()},
            {"PluginDir",
             std::filesystem::path(banyan::testing::built("doctor_foreign_plugin")).parent_path().string()},
            {"SLURM_VERSION", "24.11.5"},
            {"SlurmctldHost[0]", "ctl(10.0.0.1)"}};
        site out{"n01",
                 {},
                 conf,
                 banyan::fault::load_config(conf, "n01"),
                 banyan::ckpt::load_settings(conf, "n01"),
                 std::chrono::milliseconds(0),
                 {std::move(slurm), std::vector<slurm_node>{}}};
        out.is.compute = true;
        return out;
    }
    /// What is wrong, as the program prints it.
    std::string configuration() const { return as_text(check_configuration(look()), "", false); }
    std::string plugins() const {
        std::string out;
        for (const auto& f : check_plugins(look()))
            if (f.is == verdict::wrong && f.subject != "select_cons_tres_banyan.so")
                out += as_text({f}, "", false);
        return out;
    }
};

bool has(const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("nothing is wrong with a node that is well", "[doctor]") {
    const node n;
    CHECK(n.configuration().empty());
    CHECK(n.plugins().empty());
    // The files beside banyan.conf do without it.
    std::filesystem::remove(n.conf);
    CHECK(n.configuration().empty());
    CHECK(n.plugins().empty());
}

TEST_CASE("a configuration that root alone can read is wrong", "[doctor]") {
    const node n;
    const auto folder = n.here.path / "banyan.conf.d";
    for (const auto& file : {n.conf, n.drop_in}) {
        n.set(file, 0600);
        CHECK(has(n.configuration(), "users cannot read it: " + file.string() + " has mode 0600"));
        CHECK(has(n.configuration(), "fix:  chmod 644 " + file.string() + "\n"));
        n.set(file, 0644);
    }
    for (const mode_t mode : {0700, 0711, 0754}) {
        n.set(folder, mode);
        CHECK(has(n.configuration(), "fix:  chmod o+"));
    }
    n.set(folder, 0755);
    n.set(n.here.path, 0700);
    CHECK(has(n.configuration(), "fix:  chmod o+x " + n.here.path.string() + "\n"));
    CHECK(has(n.configuration(), "1 wrong"));  // once, and not for each file behind it
}

TEST_CASE("a plugstack.conf that users cannot read is wrong, and what it includes", "[doctor]") {
    node n;
    n.set(n.plugstack, 0600);
    CHECK(has(n.plugins(), "fix:  chmod 644 " + n.plugstack.string() + "\n"));
    std::filesystem::create_directories(n.here.path / "plugstack.conf.d");
    n.set(n.here.path / "plugstack.conf.d", 0755);
    std::filesystem::rename(n.plugstack, n.here.path / "plugstack.conf.d/b.conf");
    n.set(n.here.write("plugstack.conf", "include plugstack.conf.d/*.conf\n"), 0644);
    CHECK(has(n.plugins(), "plugstack.conf.d/b.conf has mode 0600"));
    n.set(n.here.path / "plugstack.conf.d/b.conf", 0644);
    CHECK(n.plugins().empty());
    n.set(n.here.path / "plugstack.conf.d", 0711);  // no pattern finds a file there
    CHECK(has(n.plugins(), "plugstack.conf.d has mode 0711"));
}

TEST_CASE("a checkpoint daemon that a prolog cannot start is wrong", "[doctor]") {
    const node n;
    n.set(n.here.path / "libexec", 0775);
    CHECK(has(n.plugins(), "can be written by others"));
    CHECK(has(n.plugins(), "fix:  chmod go-w " + (n.here.path / "libexec").string() + "\n"));
    n.set(n.here.path / "libexec", 0755);
    n.set(n.program, 0644);
    CHECK(has(n.plugins(), "is no program"));
    std::filesystem::remove(n.program);
    CHECK(has(n.plugins(), n.program.string() + ": No such file or directory"));
    CHECK(has(n.plugins(), "take ckptd= out of that line"));
    auto login = n.look();
    login.is = {.login = true};
    CHECK(count(check_plugins(login), verdict::wrong) == 0);  // no prolog runs there
}

TEST_CASE("an argument that the SPANK plugin ignores is wrong", "[doctor]") {
    const node n;
    n.line(" confg=/x");
    CHECK(has(n.plugins(), "confg=/x behind spank_banyan.so is ignored"));
    CHECK(has(n.plugins(), "fix:  did you mean config=?"));
}

TEST_CASE("a memory_limit in which nothing fits is wrong", "[doctor]") {
    CHECK_FALSE(judge_limits(64u << 20, 0));
    CHECK_FALSE(judge_limits(1ull << 30, 64u << 20));
    for (const std::uint64_t small : {0u, 1u << 20, (64u << 20) - 1})
        CHECK(judge_limits(small, 0)->is == verdict::wrong);
    CHECK(has(judge_limits(1u << 20, 0)->fix, "six times the state of the node's ranks"));
    CHECK(has(judge_limits(1ull << 30, 1u << 20)->what, "job_memory_limit is 1.0 MiB"));
    const node n;
    n.here.write("banyan.conf", "[ckptd]\nmemory_limit = \"1M\"\n");
    CHECK(check_memory(n.look()).front().is == verdict::wrong);
}

TEST_CASE("a node that nobody told of the controller is to be told", "[doctor]") {
    const node n;
    auto here = n.look();
    here.fault->port = 1;
    const auto told = as_text(check_ports(here), "", false);
    CHECK(has(told, "fix:  [fault] controller = \"HOST\" in banyan.conf"));
    CHECK(has(told, "slurmctld's: ctl\n"));
    CHECK(told.find("systemctl") == std::string::npos);
    here.is.controller = true;
    CHECK(has(as_text(check_ports(here), "", false), "systemctl enable --now banyan-faultd-controller"));
}

TEST_CASE("a banyan.conf that is gone is to be brought back", "[doctor]") {
    node n;
    std::filesystem::remove_all(n.here.path / "banyan.conf.d");
    std::filesystem::remove(n.conf);
    CHECK(has(n.configuration(), "fix:  bring it back: banyan-tools has it"));
    CHECK(has(n.configuration(), "1 wrong"));
    auto other = n.look();
    other.config_path.clear();
    const auto told = as_text(check_plugins(other), "", false);
    CHECK(has(told, "config=: cannot open " + n.conf.string()));
    CHECK(told.find("write the line") == std::string::npos);
}

TEST_CASE("a wrong key is told with what does not start", "[doctor]") {
    const node n;
    const auto with = [&](const std::string& text) {
        n.here.write("banyan.conf", text);
        return n.configuration();
    };
    CHECK(has(with("[ckptd]\nmemory_limt = \"1G\"\n"), "why:  banyan-ckptd does not start with it"));
    CHECK(has(with("[fault]\ncontrolle = \"x\"\n"), "why:  banyan-faultd (agents and controller)"));
    CHECK(has(with("[fault]\nlogs = [\"x\"]\n"), "why:  banyan-faultd (agents and controller)"));
    CHECK(has(with("[peers]\nencrpt = true\n"), "why:  neither banyan-ckptd nor banyan-faultd"));
    CHECK(has(with("[topo]\nmax_age = 3\n"), "why:  slurmctld goes by that key's default"));
    CHECK(has(with("[sweep]\nlink = 3\n"), "why:  banyan-sweep does not start with it"));
    CHECK(has(with("[ckptd\n"), "why:  no daemon of banyan starts with it"));
    CHECK(has(with("[ckptd]\nprot = 1\n[fault]\nprot = 1\n"), "2 wrong"));
}

}  // namespace test_doctor_config
