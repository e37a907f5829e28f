// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include "common/file.hpp"

namespace test_file {

using namespace banyan;
namespace fs = std::filesystem;

namespace {

struct scratch {
    fs::path path;
    scratch() {
        std::string name = (fs::temp_directory_path() / "banyan-test-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~scratch() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("an atomic write replaces the whole file and leaves no temporary", "[common]") {
    scratch dir;
    const auto file = dir.path / "state";
    REQUIRE(write_file_atomic(file, "old"));
    REQUIRE(write_file_atomic(file, "new content"));
    CHECK(read_file(file, 100).value() == "new content");
    CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("an atomic write that fails keeps the old content", "[common]") {
    scratch dir;
    fs::create_directory(dir.path / "target");  // rename onto a directory cannot work
    CHECK_FALSE(write_file_atomic(dir.path / "target", "x"));
    CHECK(fs::is_directory(dir.path / "target"));
    CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("an atomic write replaces no link, FIFO or device", "[common]") {
    scratch dir;
    REQUIRE(write_file_atomic(dir.path / "file", "kept"));
    fs::create_symlink(dir.path / "file", dir.path / "link");
    fs::create_symlink(dir.path / "nothing", dir.path / "dangling");
    REQUIRE(::mkfifo((dir.path / "fifo").c_str(), 0600) == 0);
    for (const auto* name : {"link", "dangling", "fifo"}) {
        INFO(name);
        CHECK(write_file_atomic(dir.path / name, "x").error().code == errc::denied);
    }
    CHECK(write_file_atomic("/dev/null", "x").error().what.find("device") != std::string::npos);
    CHECK(fs::is_symlink(dir.path / "link"));
    CHECK(fs::is_symlink(dir.path / "dangling"));
    CHECK(fs::is_fifo(dir.path / "fifo"));
    CHECK(read_file(dir.path / "file", 100).value() == "kept");
}

TEST_CASE("a read refuses what is larger than its limit", "[common]") {
    scratch dir;
    const auto file = dir.path / "f";
    REQUIRE(write_file_atomic(file, std::string(100, 'x')));
    CHECK(read_file(file, 100).value().size() == 100);
    CHECK(read_file(file, 99).error().code == errc::exhausted);
    CHECK(read_file(dir.path / "none", 99).error().code == errc::not_found);
}

TEST_CASE("files that others can write are not trusted", "[common]") {
    scratch dir;
    const auto file = dir.path / "f";
    REQUIRE(write_file_atomic(file, "x", 0600));
    CHECK(check_trusted(file));
    ::chmod(file.c_str(), 0666);
    CHECK(check_trusted(file).error().code == errc::denied);
    CHECK(check_trusted(file).error().hint == "chmod go-w " + file.string());
    ::chmod(file.c_str(), 0600);
    fs::create_symlink(file, dir.path / "link");
    CHECK(check_trusted(dir.path / "link").error().code == errc::denied);
    ::chmod(dir.path.c_str(), 0777);
    CHECK(check_trusted(file).error().code == errc::denied);
}

}  // namespace test_file
