// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "doctor/site.hpp"
#include "scratch_folder.hpp"
#include "test/built.hpp"

namespace test_plugins {

using namespace banyan::doctor;

TEST_CASE("a file that is no plugin has no version", "[doctor]") {
    const folder here;
    CHECK_FALSE(plugin_version(here.write("text.so", "hello")));
    CHECK_FALSE(plugin_version(here.write("empty.so", "")));
    CHECK_FALSE(plugin_version(here.path / "none.so"));
    // An object without that symbol, and the same cut off in its middle.
    CHECK_FALSE(plugin_version("/proc/self/exe"));
    CHECK_FALSE(plugin_version(here.write("head.so", std::string("\x7f"
                                                                 "ELF\x02\x01\x01",
                                                                 7) +
                                                         std::string(57, '\xff'))));
}

TEST_CASE("a plugin of another release is told with both", "[doctor]") {
    const folder here;
    const auto plugin = std::filesystem::path(banyan::testing::built("doctor_foreign_plugin"));
    const auto folder_of_it = plugin.parent_path().string();
    REQUIRE(plugin_version(plugin) == 0x180b05u);
    const auto judge = [&](const std::string& folders, const char* version) {
        slurm_config config{
            {"PluginDir", folders},
            {"SLURM_VERSION", version},
            {"PlugStackConfig", here.write("plugstack.conf", "optional spank_banyan.so\n").string()}};
        site s{"n01",
               {},
               {},
               banyan::fault::load_config({}, "n01").value(),
               banyan::ckpt::load_settings({}, "n01").value(),
               std::chrono::milliseconds(0),
               {std::move(config), std::vector<slurm_node>{}}};
        s.is.login = true;
        std::string wrong;
        for (const auto& f : check_plugins(s))
            if (f.is == verdict::wrong) wrong += f.subject + ": " + f.what + "\n";
        return wrong;
    };
    CHECK(judge("/nowhere:" + folder_of_it, "22.05.8")
              .find("is built for Slurm 24.11.5, and 22.05.8 is here") != std::string::npos);
    // SPANK asks for the same minor release, the plugins of slurmctld for the same micro release.
    CHECK(judge(folder_of_it, "24.11.7").find("spank_banyan.so") == std::string::npos);
    CHECK(judge("/nowhere", "25.05.1").find("spank_banyan.so: is in no folder of PluginDir=/nowhere") !=
          std::string::npos);
}

TEST_CASE("plugstack.conf is followed through its includes", "[doctor]") {
    const folder here;
    std::filesystem::create_directories(here.path / "plugstack.conf.d");
    here.write("plugstack.conf.d/banyan.conf",
               "# required spank_banyan.so\n optional\tspank_banyan.so config=/x/b.conf ckptd=/y\n");
    auto line = find_in_plugstack(
        here.write("plugstack.conf", "optional other.so\ninclude plugstack.conf.d/*.conf\n"));
    REQUIRE(line);
    REQUIRE(*line);
    CHECK_FALSE((*line)->required);
    CHECK((*line)->arguments.config == "/x/b.conf");
    line = find_in_plugstack(here.write("plugstack.conf", "required /opt/lib/spank_banyan.so\n"));
    REQUIRE((line && *line));
    CHECK((*line)->required);
    line = find_in_plugstack(here.write("plugstack.conf", "#optional spank_banyan.so\n"));
    REQUIRE(line);
    CHECK_FALSE(*line);
    CHECK_FALSE(find_in_plugstack(here.path / "none.conf"));
    CHECK_FALSE(find_in_plugstack(here.write("self.conf", "include self.conf\n")));
}

}  // namespace test_plugins
