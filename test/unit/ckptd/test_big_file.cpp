// SPDX-License-Identifier: BSD-3-Clause
//
// Large files past the page cache: any size, any memory, any file system, and no file that looks written and
// is not.
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/store/background.hpp"
#include "ckptd/store/big_file.hpp"
#include "common/file.hpp"
#include "steps.hpp"

namespace test_big_file {

using namespace banyan;
using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t most = 3 * chunk_bytes;

/// `most` random bytes that begin on a page.
std::span<std::byte> some_bytes() {
    static std::vector<std::byte> room(most + 2 * page_bytes);
    static const auto start =
        (page_bytes - reinterpret_cast<std::uintptr_t>(room.data()) % page_bytes) % page_bytes;
    static const bool filled = [] {
        std::mt19937_64 random(5);
        for (auto& b : room) b = static_cast<std::byte>(random());
        return true;
    }();
    return std::span(room).subspan(start, filled ? most + page_bytes : 0);
}

const auto nothing_to_see = [](std::size_t, std::span<const std::byte>) { return result<void>{}; };

result<void> write(const fs::path& dir, std::span<const std::byte> bytes, const big_file::look& look) {
    BANYAN_TRY(const auto folder, open_directory(dir));
    BANYAN_TRY(auto file, big_file::create(folder.get(), "big", bytes, {}, dir / "big"));
    return file.write(look);
}

void check_content(const fs::path& file, std::span<const std::byte> bytes) {
    const auto text = read_file(file, most + 1);
    REQUIRE(text);
    CHECK(text->size() == bytes.size());
    CHECK(std::ranges::equal(std::as_bytes(std::span(*text)), bytes));
}

}  // namespace

TEST_CASE("a large file has what was in memory, whatever its size and where it lay", "[ckptd]") {
    const temporary disk;
    std::string shm = "/dev/shm/banyan-big-XXXXXX";  // a tmpfs
    REQUIRE(::mkdtemp(shm.data()));
    for (const fs::path& dir : {disk.path, fs::path(shm)})
        for (const std::size_t off : {0, 1, 512})
            for (const std::size_t bytes :
                 {std::size_t{0}, std::size_t{1}, page_bytes - 1, page_bytes, page_bytes + 1, chunk_bytes - 1,
                  chunk_bytes, chunk_bytes + 1, 2 * chunk_bytes + 5 * page_bytes, most - 3}) {
                INFO(dir << ": " << bytes << " bytes at +" << off);
                const auto from = some_bytes().subspan(off, bytes);
                std::atomic<std::size_t> seen{0}, looks{0};
                const auto count = [&](std::size_t, std::span<const std::byte> data) {
                    seen += data.size();
                    ++looks;
                    return result<void>{};
                };
                REQUIRE(write(dir, from, count));
                CHECK(seen == bytes);
                CHECK(looks == chunk_count(bytes));
                check_content(dir / "big", from);
            }
    fs::remove_all(shm);
}

TEST_CASE("what is there under the name goes, and a look that refuses ends the writing", "[ckptd]") {
    const temporary t;
    fs::create_symlink("/dev/null", t.path / "big");
    REQUIRE(write(t.path, some_bytes().first(100), nothing_to_see));
    CHECK(fs::is_regular_file(fs::symlink_status(t.path / "big")));
    const auto refuse = [](std::size_t chunk, std::span<const std::byte>) -> result<void> {
        if (chunk == 2) return fail(errc::conflict, "not this one");
        return {};
    };
    const auto refused = write(t.path, some_bytes().first(most), refuse);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == "not this one");
}

// Else what changes while the device reads it would be in the file, and nobody would have seen it.
TEST_CASE("a chunk is looked at when it has been written, to its last byte", "[ckptd]") {
    const temporary t;
    for (const std::size_t bytes : {page_bytes + 7, 2 * chunk_bytes, 2 * chunk_bytes + 5}) {
        std::atomic<int> unwritten{0};
        const auto in_file = [&](std::size_t chunk, std::span<const std::byte> data) -> result<void> {
            std::vector<std::byte> there(data.size());
            const unique_fd fd(::open((t.path / "big").c_str(), O_RDONLY | O_CLOEXEC));
            const auto n =
                ::pread(fd.get(), there.data(), there.size(), static_cast<off_t>(chunk * chunk_bytes));
            const bool same = n == static_cast<ssize_t>(there.size()) && std::ranges::equal(there, data);
            unwritten += same ? 0 : 1;
            return {};
        };
        REQUIRE(write(t.path, some_bytes().first(bytes), in_file));
        CHECK(unwritten == 0);
    }
}

TEST_CASE("a full file system is an error and says so", "[ckptd]") {
    if (::geteuid() != 0) return;
    const temporary t;
    if (::mount("tmpfs", t.path.c_str(), "tmpfs", 0, "size=6m") != 0) return;
    const auto written = write(t.path, some_bytes().first(most), nothing_to_see);
    ::umount2(t.path.c_str(), MNT_DETACH);
    REQUIRE_FALSE(written);
    CHECK(written.error().code == errc::exhausted);
    CHECK(written.error().what.find("No space left") != std::string::npos);
}

TEST_CASE("several threads write a large file, all as the user that their caller is", "[ckptd]") {
    if (::geteuid() != 0) return;
    const storage_user user{65534, 65534, {65534}};
    const temporary t;
    REQUIRE(::chown(t.path.c_str(), user.uid, user.gid) == 0);
    std::mutex lock;
    std::condition_variable came;
    std::set<std::thread::id> writers;
    std::set<std::string> rights;
    // Each waits for another one, so that none takes all the turns.
    const auto meet = [&](std::size_t, std::span<const std::byte>) -> result<void> {
        std::unique_lock held(lock);
        writers.insert(std::this_thread::get_id());
        const auto text = read_file("/proc/thread-self/status", 16 << 10).value_or("");
        for (const char* line : {"Uid:", "Gid:", "Groups:", "CapEff:"}) {
            const auto at = text.find(line);
            rights.insert(text.substr(at, text.find('\n', at) - at));
        }
        came.notify_all();
        came.wait_for(held, std::chrono::seconds(5), [&] { return writers.size() > 1; });
        return {};
    };
    {
        const auto identity = as_user::take(user);
        REQUIRE(identity);
        REQUIRE(write(t.path, some_bytes().first(most), meet));
    }
    CHECK(writers.size() > 1);
    CHECK(writers.count(std::this_thread::get_id()) == 0);
    CHECK(rights == std::set<std::string>{"Uid:\t0\t0\t0\t65534", "Gid:\t0\t0\t0\t65534", "Groups:\t65534 ",
                                          "CapEff:\t0000000000000000"});
    check_content(t.path / "big", some_bytes().first(most));
}

TEST_CASE("background threads step back, and only they", "[ckptd]") {
    const int before = ::getpriority(PRIO_PROCESS, 0);
    int there = -100;
    std::thread([&] {
        lower_priority();
        there = ::getpriority(PRIO_PROCESS, 0);
    }).join();
    CHECK(there == std::max(before, 10));
    CHECK(::getpriority(PRIO_PROCESS, 0) == before);
}

}  // namespace test_big_file
