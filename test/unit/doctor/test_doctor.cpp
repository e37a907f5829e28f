// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "doctor/access.hpp"
#include "doctor/memory.hpp"
#include "doctor/opensm.hpp"
#include "doctor/site.hpp"
#include "scratch_folder.hpp"

namespace test_doctor {

using namespace banyan::doctor;

namespace {

constexpr std::uint64_t gib = 1ull << 30;

site site_of(slurm_config config) {
    return {"n01",
            {},
            {},
            banyan::fault::load_config({}, "n01").value(),
            banyan::ckpt::load_settings({}, "n01").value(),
            std::chrono::milliseconds(0),
            {std::move(config), std::vector<slurm_node>{}}};
}

slurm_config good() {
    return {{"SelectType", "select/cons_tres_banyan"},
            {"JobSubmitPlugins", "banyan"},
            {"PrologFlags", "Alloc"},
            {"AuthType", "auth/munge"},
            {"JobRequeue", "1"},
            {"SLURM_VERSION", "22.05.8"}};
}

std::size_t wrong_with(const char* key, const char* value) {
    auto config = good();
    config[key] = value;
    return count(check_slurm(site_of(config)), verdict::wrong);
}

}  // namespace

TEST_CASE("what scontrol shows is read as it stands there", "[doctor]") {
    const auto config = parse_config(
        "Configuration data as of 2026-11-22T04:00:00\nSelectType              = select/cons_tres_banyan\n"
        "SlurmctldHost[0]        = ctl1(10.0.0.1)\nSlurmctldHost[1]        = ctl2\nPrologFlags             = "
        "(null)\n"
        "\nSlurmctld(primary) at ctl1 is UP\n");
    CHECK(value_of(config, "SelectType") == "select/cons_tres_banyan");
    CHECK(value_of(config, "PrologFlags").empty());
    CHECK(controllers(config) == std::vector<std::string>{"ctl1", "ctl2"});
    const auto nodes = parse_nodes(
        "NodeName=n01 Arch=x86_64 NodeAddr=n01.ib NodeHostName=host1 RealMemory=1000 MemSpecLimit=200 "
        "State=IDLE Comment=RealMemory=7 NodeAddr=evil\n"
        "NodeName=n02 NodeAddr=n02 NodeHostName=n02 RealMemory=2000\nNo nodes\n");
    REQUIRE(nodes.size() == 2);
    CHECK(nodes[0].address == "n01.ib");
    CHECK(nodes[0].host == "host1");
    CHECK(nodes[0].real_memory == 1000);
    CHECK(nodes[0].mem_spec_limit == 200);
    CHECK(nodes[1].mem_spec_limit == 0);
    CHECK(parse_nodes("").empty());
}

TEST_CASE("versions are Slurm's numbers", "[doctor]") {
    CHECK(parse_version("22.05.8") == 0x160508u);
    CHECK(parse_version("24.11.5-4") == 0x180b05u);
    CHECK(version_text(0x160508) == "22.05.8");
    CHECK_FALSE(parse_version("22.05"));
    CHECK_FALSE(parse_version("slurm.22.5"));
    CHECK_FALSE(parse_version("22.999.1"));
}

TEST_CASE("each setting of slurm.conf that banyan needs is missed", "[doctor]") {
    CHECK(exit_code(check_slurm(site_of(good()))) == 0);
    CHECK(wrong_with("SelectType", "select/cons_tres") == 1);
    CHECK(wrong_with("JobSubmitPlugins", "lua") == 1);
    CHECK(wrong_with("JobSubmitPlugins", "lua,banyan") == 0);
    CHECK(wrong_with("PrologFlags", "") == 1);
    CHECK(wrong_with("PrologFlags", "Alloc,Contain") == 0);
    CHECK(wrong_with("AuthType", "auth/jwt") == 1);
    CHECK(wrong_with("SlurmctldParameters", "enable_stepmgr") == 0);
    for (const auto& f : check_slurm(site_of({})))
        if (f.is == verdict::wrong) {
            CHECK_FALSE(f.why.empty());
            CHECK_FALSE(f.fix.empty());
        }
}

TEST_CASE("a Slurm with its own select plugin and nothing of banyan's in slurmctld is a mode", "[doctor]") {
    const auto plugins_of_slurmctld = [](const slurm_config& of) {
        auto controller = site_of(of);
        controller.is.controller = true;
        const auto found = check_plugins(controller);
        return std::count_if(found.begin(), found.end(), [](const finding& f) {
            return f.subject.find("select_cons_tres_banyan.so") != std::string::npos ||
                   f.subject.find("job_submit_banyan.so") != std::string::npos;
        });
    };
    auto config = good();
    config["SelectType"] = "select/cons_tres";
    for (const char* others : {"", "lua"}) {
        config["JobSubmitPlugins"] = others;
        auto here = site_of(config);
        CHECK(exit_code(check_slurm(here)) == 0);
        CHECK(as_text(check_slurm(here), "", true).find("Slurm chooses the nodes") != std::string::npos);
        CHECK(plugins_of_slurmctld(config) == 0);
    }
    CHECK(plugins_of_slurmctld(good()) == 2);
    config["JobSubmitPlugins"] = "banyan";
    CHECK(exit_code(check_slurm(site_of(config))) == 1);
    for (const char* unknown : {"", "(null)"}) {
        config["JobSubmitPlugins"] = "";
        config["SelectType"] = unknown;
        CHECK_FALSE(is_without_select(config));
        CHECK(exit_code(check_slurm(site_of(config))) == 1);
    }
}

TEST_CASE("a slurmctld that does not answer is not a Slurm without banyan", "[doctor]") {
    auto here = site_of({});
    here.slurm.config = banyan::fail(banyan::errc::unavailable, "scontrol ended with 1: refused");
    here.slurm.nodes = std::unexpected(here.slurm.config.error());
    here.is.compute = true;
    const auto found = check_slurm(here);
    CHECK(count(found, verdict::wrong) == 0);
    CHECK(count(found, verdict::unknown) == 1);
    CHECK(exit_code(found) == 1);
    CHECK(check_memory(here).front().is == verdict::unknown);
}

TEST_CASE("jobs and checkpoints have to fit a node together", "[doctor]") {
    const auto judge = [](std::uint64_t total, std::uint64_t slurm, std::uint64_t kept, std::uint64_t ckptd,
                          bool limited) {
        return judge_memory({total * gib, slurm * gib, kept * gib, ckptd * gib, limited}).is;
    };
    CHECK(judge(256, 250, 70, 64, true) == verdict::fine);
    CHECK(judge(256, 250, 0, 64, true) == verdict::wrong);
    CHECK(judge(256, 180, 0, 64, true) == verdict::fine);
    CHECK(judge(256, 250, 70, 64, false) == verdict::note);
    CHECK(judge(64, 60, 0, 64, false) == verdict::wrong);
    CHECK(judge(256, 10, 300, 64, true) == verdict::fine);
    CHECK(memory_total("MemTotal:       24576000 kB\nMemFree: 1 kB\n") == 24576000ull * 1024);
    CHECK_FALSE(memory_total("MemFree: 1 kB\n"));
}

TEST_CASE("opensm's log comes at once only where it is told so", "[doctor]") {
    CHECK(judge_opensm({"opensm", "-d2"}, "").flushes);
    CHECK(judge_opensm({"opensm", "-d", "2"}, "force_log_flush FALSE\n").flushes);
    CHECK(judge_opensm({"opensm"}, "# force_log_flush TRUE\nforce_log_flush TRUE\n").flushes);
    CHECK_FALSE(judge_opensm({"opensm"}, "# force_log_flush TRUE\n").flushes);
    CHECK(judge_opensm({"opensm"}, "force_log_flush\tTRUE   # at once\n").flushes);
    CHECK(judge_opensm({"opensm", "-V"}, "").flushes);
    for (const auto* no : {"true", "1", "yes", "FALSE"})
        CHECK_FALSE(judge_opensm({"opensm"}, std::string("force_log_flush ") + no + "\n").flushes);
    CHECK_FALSE(judge_opensm({"opensm", "--daemon"}, "force_log_flush FALSE\n").flushes);
    CHECK(judge_opensm({"opensm", "-f", "/x/osm.log"}, "log_file /var/log/opensm.log\n").log == "/x/osm.log");
    CHECK(judge_opensm({"opensm", "--log_file=/x/osm.log"}, "").log == "/x/osm.log");
    CHECK(judge_opensm({"opensm"}, "log_file /var/log/opensm.log\n").log == "/var/log/opensm.log");
    CHECK(judge_opensm({"opensm"}, "log_file (null)\n").log.empty());
    CHECK(opensm_configuration({"opensm", "-F", "/x/opensm.conf"}) == "/x/opensm.conf");
    CHECK(opensm_configuration({"opensm"}) == "/etc/opensm/opensm.conf");
}

TEST_CASE("a file behind a closed folder cannot be read", "[doctor]") {
    const folder here;
    const auto file = here.write("snapshot", "x");
    std::filesystem::permissions(here.path, std::filesystem::perms(0755));
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    CHECK(cannot_read(file, "nobody").empty());
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    CHECK(cannot_read(file, "nobody").find("0600") != std::string::npos);
    CHECK(cannot_read(file, "root").empty());
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    std::filesystem::permissions(here.path, std::filesystem::perms(0700));
    CHECK_FALSE(cannot_read(file, "nobody").empty());
    CHECK_FALSE(cannot_read(file, "no-such-user").empty());
    std::filesystem::permissions(here.path, std::filesystem::perms(0755));
}

TEST_CASE("what is told is for people, for machines and for cron", "[doctor]") {
    const findings well{fine("munge", "encodes")};
    findings ill = well;
    ill.push_back({verdict::wrong, "file\x1b[2J", "is gone", "nothing works", "make it"});
    CHECK(as_text(well, "n01 (compute)", false).empty());
    CHECK(as_text(well, "n01 (compute)", true).find("fine  munge: encodes") != std::string::npos);
    const auto text = as_text(ill, "n01 (compute)", false);
    CHECK(text.find("munge") == std::string::npos);
    CHECK(text.find("WRONG") != std::string::npos);
    CHECK(text.find("fix:  make it") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(exit_code(well) == 0);
    CHECK(exit_code(ill) == 1);
    CHECK(exit_code({{verdict::unknown, "x", "", "", ""}}) == 1);
    const auto json = nlohmann::json::parse(as_json(ill, "n01", {"compute"}));
    CHECK(json["wrong"] == 1);
    CHECK(json["findings"][1]["fix"] == "make it");
}

}  // namespace test_doctor
