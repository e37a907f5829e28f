// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/daemon/library_copy.hpp"
#include "common/file.hpp"
#include "test/scratch_path.hpp"

namespace test_library_copy {

using banyan::read_file;
using banyan::ckpt::put_library_beside;
using banyan::testing::scratch_path;

namespace {

struct place {
    std::filesystem::path library = scratch_path("usr") / "libx.so.0", folder = scratch_path("run");
    std::string socket = (folder / "ckptd.sock").string();

    place() {
        for (const auto& made : {library.parent_path(), folder}) {
            std::filesystem::remove_all(made);
            std::filesystem::create_directories(made);
        }
    }
    void release(const std::string& text) const { std::ofstream(library) << text; }
    std::string copy() const { return read_file(folder / "libx.so.0", 100).value_or("none"); }
    ino_t inode() const {
        struct stat st {};
        return ::stat((folder / "libx.so.0").c_str(), &st) == 0 ? st.st_ino : 0;
    }
};

}  // namespace

TEST_CASE("the library beside the socket is that of the daemon which was started last", "[ckptd]") {
    const place p;
    put_library_beside(p.socket, p.library);
    CHECK(p.copy() == "none");
    p.release("one");
    put_library_beside(p.socket, p.library);
    CHECK(p.copy() == "one");
    const auto before = p.inode();
    put_library_beside(p.socket, p.library);
    CHECK(p.inode() == before);  // whoever maps it keeps his pages in the cache
    p.release("two");
    put_library_beside(p.socket, p.library);
    CHECK(p.copy() == "two");
    CHECK(p.inode() != before);  // what is mapped is never written over
    std::filesystem::remove(p.library);
    put_library_beside(p.socket, p.library);
    CHECK(p.copy() == "two");
}

TEST_CASE("what lies in the library's place and is no file stays, and the daemon goes on", "[ckptd]") {
    const place p;
    p.release("one");
    std::filesystem::create_symlink("/etc/passwd", p.folder / "libx.so.0");
    put_library_beside(p.socket, p.library);
    CHECK(std::filesystem::is_symlink(p.folder / "libx.so.0"));
    std::filesystem::remove(p.folder / "libx.so.0");
    std::filesystem::remove_all(p.folder);
    put_library_beside(p.socket, p.library);
    CHECK_FALSE(std::filesystem::exists(p.folder));
}

}  // namespace test_library_copy
