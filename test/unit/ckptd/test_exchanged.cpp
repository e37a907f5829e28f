// SPDX-License-Identifier: BSD-3-Clause
//
// A directory that a group shares: whoever may rename in it puts another folder under a name the moment that
// it is made.
#include <filesystem>
#include <fstream>
#include <functional>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckptd/store/leftovers.hpp"
#include "ckptd/store/user_dir.hpp"
#include "steps.hpp"

namespace test_exchanged {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

std::function<void(int parent, const char* name)> after_mkdir;

mode_t mode_of(const fs::path& path) {
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_mode & 07777;
}

}  // namespace

}  // namespace test_exchanged

// Stands in for the C library's.
extern "C" int mkdirat(int parent, const char* name, mode_t mode) noexcept {
    const auto done = static_cast<int>(::syscall(SYS_mkdirat, parent, name, mode));
    const auto& then = test_exchanged::after_mkdir;
    if (done == 0 && then) then(parent, name);
    return done;
}

namespace test_exchanged {

TEST_CASE("a folder that is exchanged when it is made keeps its own modes", "[ckptd]") {
    const temporary t;
    const auto shared = fs::path(t.dir());
    fs::create_directory(shared);
    fs::permissions(shared, fs::perms(02770));
    fs::create_directory(shared / "private");
    REQUIRE(::chmod((shared / "private").c_str(), 0700) == 0);
    const auto top = open_directory(shared);
    REQUIRE(top);
    after_mkdir = [](int parent, const char* name) {
        CHECK(::renameat2(parent, name, parent, "private", RENAME_EXCHANGE) == 0);
    };
    const auto mask = ::umask(077);
    const auto made = create_folder(top->get(), "made", modes_in(top->get()), "made");
    ::umask(mask);
    after_mkdir = {};
    REQUIRE(made);
    CHECK(mode_of(shared / "made") == 0700);      // the owner's own, under its new name
    CHECK(mode_of(shared / "private") == 02770);  // what was made
}

TEST_CASE("a folder under a name of ours loses nothing that is not ours", "[ckptd]") {
    const temporary t;
    fs::create_directory(t.dir());
    const auto top = open_directory(t.dir());
    REQUIRE(top);
    for (const char* name : {".flush.7.1.abc", ".trash.abc"}) {
        const auto folder = fs::path(t.dir()) / name;
        fs::create_directory(folder);
        std::ofstream(folder / "notes.txt") << "mine";
        std::ofstream(folder / "rank-000000.safetensors") << "banyan's";
    }
    REQUIRE(put_away_flushes(top->get(), t.dir()));
    std::size_t kept = 0, ours = 0;
    for (const auto& one : fs::recursive_directory_iterator(t.dir())) {
        kept += one.path().filename() == "notes.txt";
        ours += one.path().filename() == "rank-000000.safetensors";
    }
    CHECK(kept == 2);
    CHECK(ours == 0);
}

}  // namespace test_exchanged
