// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "common/config.hpp"
#include "common/config_keys.hpp"
#include "common/file.hpp"
#include "config_pages.hpp"
#include "test/built.hpp"

namespace test_config {

using namespace banyan;

namespace {

result<config_file> config_from(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "banyan-conf-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    ::close(fd);
    auto written = write_file_atomic(name, text);
    auto loaded = config_file::load(name);
    std::filesystem::remove(name);
    return loaded;
}

result<void> check(const std::string& text, const char* table) {
    return config_from(text).value().section(table).check();
}

template <class T>
T value_of(const config_section& section, const char* key) {
    T out{};
    section.field(key, out);
    return out;
}

}  // namespace

TEST_CASE("files in the folder beside it are part of the configuration", "[common]") {
    std::string folder = (std::filesystem::temp_directory_path() / "banyan-conf-XXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()));
    const std::filesystem::path conf = std::filesystem::path(folder) / "banyan.conf";
    const auto beside = [&](const char* name) { return folder + "/banyan.conf.d/" + name; };
    std::filesystem::create_directory(folder + "/banyan.conf.d");
    REQUIRE(write_file_atomic(conf, "[ckptd]\nport = 3\nkeep = 4\n[fault]\n"));
    REQUIRE(write_file_atomic(beside("b.conf"), "[ckptd]\nport = 5\n"));
    REQUIRE(write_file_atomic(beside("a.conf"), "[ckptd]\nport = 4\n\n[fault]\ncontroller = \"ctl\"\n"));
    REQUIRE(write_file_atomic(beside("c.conf.old"), "[nothing]\n"));
    const auto file = config_file::load(conf).value();
    const auto section = file.section("ckptd");
    CHECK(value_of<std::uint16_t>(section, "port") == 5);
    CHECK(value_of<std::uint32_t>(section, "keep") == 4);
    CHECK(file.section("fault").text("controller") == "ctl");
    CHECK(section.check());
    std::filesystem::rename(conf, folder + "/away");
    CHECK(value_of<std::uint16_t>(config_file::load(conf).value().section("ckptd"), "port") == 5);
    std::filesystem::rename(folder + "/away", conf);
    REQUIRE(write_file_atomic(beside("b.conf"), "[ckptd]\nprot = 5\n"));
    const auto wrong = config_file::load(conf).value().section("ckptd").check();
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().what.find("b.conf:2: [ckptd] has no key") != std::string::npos);
    REQUIRE(write_file_atomic(beside("b.conf"), "[ckptd\n"));
    CHECK_FALSE(config_file::load(conf));
    std::filesystem::remove_all(folder);
}

TEST_CASE("a block that is pasted behind its table is told where it belongs", "[common]") {
    const auto twice = config_from("[ckptd]\nport = 3\n\n[ckptd]\nmemory_limit = \"1G\"\n");
    REQUIRE_FALSE(twice);
    CHECK(twice.error().hint.find(".d/NAME.conf") != std::string::npos);
}

TEST_CASE("values, defaults and absent sections", "[common]") {
    const auto file = config_from(
                          "[ckptd]\nport = 3\nretention = \"250ms\"\nmemory_limit = \"1.5G\"\n"
                          "socket = \"/run/%n/%n.sock\"\n")
                          .value();
    const auto a = file.section("ckptd", "n01");
    CHECK(value_of<std::uint16_t>(a, "port") == 3);
    CHECK(value_of<std::chrono::milliseconds>(a, "retention") == std::chrono::milliseconds(250));
    CHECK(value_of<std::uint64_t>(a, "memory_limit") == 3ull << 29);
    CHECK(a.text("socket") == "/run/n01/n01.sock");
    CHECK(file.section("ckptd").text("socket") == "/run/%n/%n.sock");
    CHECK(value_of<std::uint32_t>(a, "keep") == 2);
    CHECK(a.check());
    const auto b = file.section("fault");
    CHECK(value_of<bool>(b, "dry_run"));
    CHECK(value_of<std::vector<std::string>>(b, "fabric_dump_command") ==
          std::vector<std::string>{"ibnetdiscover"});
    CHECK(b.check());
    CHECK(config_file::defaults().section("topo").text("snapshot").ends_with("fabric.snapshot"));
}

TEST_CASE("an unknown key is an error that offers the nearest", "[common]") {
    const auto e = check("[ckptd]\nretentoin = \"1s\"\n", "ckptd").error();
    CHECK(e.what.find("no key \"retentoin\"") != std::string::npos);
    CHECK(e.hint.find("retention") != std::string::npos);
}

TEST_CASE("a wrong value names file, line and key, and its default is read", "[common]") {
    CHECK(check("[ckptd]\nkeep = 0\n", "ckptd")
              .error()
              .what.find(":2: [ckptd] keep is not a number from 1 to 1000") != std::string::npos);
    for (const auto* wrong :
         {"port = 65536", "port = \"571\"", "port = 1.0", "dry_run = \"yes\"", "fabric_dump_command = []",
          "fabric_dump_command = [1]", "fabric_dump_command = \"ibnetdiscover\"", "correlation_window = 30",
          "correlation_window = \"-1s\"", "kmsg_trust = \"all\"", "socket = 3"})
        CHECK_FALSE(check(std::string("[fault]\n") + wrong + "\n", "fault"));
    for (const auto* wrong : {"memory_limit = 64", "memory_limit = \"lots\"", "log_level = \"loud\""})
        CHECK_FALSE(check(std::string("[ckptd]\n") + wrong + "\n", "ckptd"));
    const auto section = config_from("[ckptd]\nport = \"571\"\n").value().section("ckptd");
    CHECK(value_of<std::uint16_t>(section, "port") == 571);
    CHECK_FALSE(config_from("[ckptd\n"));
}

TEST_CASE("a table that nobody reads, and a key outside the tables", "[common]") {
    CHECK(config_from("[ckpt]\n").error().text().find("did you mean [ckptd]?") != std::string::npos);
    CHECK(config_from("port = 6711\n").error().what.find(":1: there is no [port]") != std::string::npos);
    CHECK(config_from("fault = 3\n").error().what.find("fault is no table") != std::string::npos);
}

TEST_CASE("a key that is not in the table, or of another type, is a bug", "[common]") {
    const auto section = config_file::defaults().section("ckptd");
    CHECK_THROWS_AS(section.text("sokcet"), std::logic_error);
    CHECK_THROWS_AS(section.text("port"), std::logic_error);
}

TEST_CASE("every default is right, and every table has keys", "[common]") {
    std::string text, table;
    for (const auto& key : config_keys()) {
        if (key.table != table) text += "[" + std::string(table = key.table) + "]\n";
        text += std::string(key.name) + " = " + std::string(key.fallback) + "\n";
        CHECK(find_config_key(key.table, key.name) == &key);
        CHECK(key.about.ends_with('.'));
    }
    const auto file = config_from(text).value();
    for (const auto& t : config_tables()) CHECK(file.section(t.name).check());
}

TEST_CASE("what is written is read again, whatever stands in it", "[common]") {
    const std::string hostile = "a\"b\\c\n\t[x]\x01 = 'y' # \xc3\xa9";
    config_text out("fault");
    out.field("controller", hostile);
    out.field("fabric_dump_command", std::vector<std::string>{hostile, ""});
    out.field("port", std::uint16_t{7});
    out.field("dry_run", false);
    out.field("correlation_window", std::chrono::milliseconds(1500));
    const auto section = config_from(out.text()).value().section("fault");
    REQUIRE(section.check());
    CHECK(section.text("controller") == hostile);
    CHECK(value_of<std::vector<std::string>>(section, "fabric_dump_command") ==
          std::vector<std::string>{hostile, ""});
    CHECK(value_of<std::uint16_t>(section, "port") == 7);
    CHECK_FALSE(value_of<bool>(section, "dry_run"));
    CHECK(value_of<std::chrono::milliseconds>(section, "correlation_window") ==
          std::chrono::milliseconds(1500));
}

// BANYAN_UPDATE_GOLDEN=1 writes both anew.
TEST_CASE("the sample and the manual page are what the table says", "[common]") {
    const std::string root = banyan::testing::source("");
    for (const auto& [path, made] :
         {std::pair{root + "/etc/banyan.conf", test::sample_config()},
          std::pair{root + "/docs/man/banyan.conf.5", test::config_manual(root)}}) {
        if (std::getenv("BANYAN_UPDATE_GOLDEN")) REQUIRE(write_file_atomic(path, made));
        CHECK(read_file(path, 1 << 20).value() == made);
    }
}

}  // namespace test_config
