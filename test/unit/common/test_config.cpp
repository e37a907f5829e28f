// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>

#include "common/config.hpp"
#include "common/file.hpp"

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

}  // namespace

TEST_CASE("values, defaults and absent sections", "[common]") {
    const auto file = config_from("[ckptd]\nx = 3\nd = \"250ms\"\nl = [\"p\", \"q\"]\n").value();
    auto a = file.section("ckptd");
    CHECK(a.integer("x", 1, 0, 10) == 3);
    CHECK(a.duration("d", std::chrono::seconds(1)) == std::chrono::milliseconds(250));
    CHECK(a.strings("l", {}) == std::vector<std::string>{"p", "q"});
    CHECK(a.string("s", "default") == "default");
    CHECK(a.finish());
    auto b = file.section("fault");
    CHECK(b.boolean("y", true));
    CHECK(b.finish());
}

TEST_CASE("an unknown key is an error that offers the nearest", "[common]") {
    auto section = config_from("[ckptd]\nleese = \"1s\"\n").value().section("ckptd");
    section.duration("lease", std::chrono::seconds(1));
    const auto e = section.finish().error();
    CHECK(e.what.find("no key \"leese\"") != std::string::npos);
    CHECK(e.hint.find("lease") != std::string::npos);
}

TEST_CASE("wrong types and ranges name file, line and key", "[common]") {
    auto section = config_from("[ckptd]\nx = 30\n").value().section("ckptd");
    section.integer("x", 1, 0, 10);
    CHECK(section.finish().error().what.find(":2: [ckptd] x is not a number from 0 to 10") !=
          std::string::npos);
    CHECK_FALSE(config_from("[ckptd\n"));
}

TEST_CASE("a table that nobody reads, and a key outside the tables", "[common]") {
    CHECK(config_from("[ckpt]\n").error().text().find("did you mean [ckptd]?") != std::string::npos);
    CHECK(config_from("port = 6711\n").error().what.find(":1: there is no [port]") != std::string::npos);
    CHECK(config_from("fault = 3\n").error().what.find("fault is no table") != std::string::npos);
}
