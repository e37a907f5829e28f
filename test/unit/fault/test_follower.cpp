// SPDX-License-Identifier: BSD-3-Clause
//
// Following a file by name: what is appended comes, through truncation, replacement and deletion.
#include <fstream>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fault/sources/file_follower.hpp"
#include "fault/sources/gpu_map.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_follower {

using namespace banyan;
using namespace banyan::fault;

namespace {

class bench {
  public:
    std::filesystem::path dir = banyan::testing::scratch_path("follow");
    std::filesystem::path path = dir / "log";
    std::vector<std::string> lines, streams;
    std::unique_ptr<file_follower> follower;
    std::size_t in_first_turn = 0;

    bench() { std::filesystem::create_directories(dir); }
    ~bench() { std::filesystem::remove_all(dir); }
    void write(const std::string& text) { std::ofstream(path, std::ios::app) << text; }
    void start(file_follower::start from) {
        follower = std::make_unique<file_follower>(path, from, [this](const log_line& line) {
            lines.emplace_back(line.raw);
            streams.emplace_back(line.stream);
            if (lines.size() == 1) asio::post(io_, [this] { in_first_turn = lines.size(); });
        });
        asio::co_spawn(io_, follower->run(), asio::detached);
        io_.poll();
    }
    /// Runs until there are `count` lines.
    bool wait(std::size_t count) {
        time_.until(io_, [&] { return lines.size() >= count; });
        return lines.size() == count;
    }
    void pass(clock::duration some) { time_.pass(io_, some); }

  private:
    banyan::testing::held_run time_;
    asio::io_context io_;
};

}  // namespace

TEST_CASE("appended lines come, half ones when they are whole", "[fault]") {
    bench b;
    b.write("old\n");
    b.start(file_follower::start::end);
    b.write("one\nha");
    REQUIRE(b.wait(1));
    b.write("lf\n");
    REQUIRE(b.wait(2));
    CHECK(b.lines == std::vector<std::string>{"one", "half"});
    CHECK(b.follower->position() == 4 + 4 + 5);
}

TEST_CASE("truncation in place starts over", "[fault]") {
    bench b;
    b.write("a long first line\n");
    b.start(file_follower::start::beginning);
    REQUIRE(b.wait(1));
    std::filesystem::resize_file(b.path, 0);
    b.write("new\n");
    REQUIRE(b.wait(2));
    CHECK(b.lines.back() == "new");
    CHECK(b.streams.front() != b.streams.back());  // the same offset is another line now
}

TEST_CASE("rotation: the rest of the old file, then the new one", "[fault]") {
    bench b;
    b.write("1\n");
    b.start(file_follower::start::beginning);
    REQUIRE(b.wait(1));
    b.write("2\n");
    std::filesystem::rename(b.path, b.dir / "log.1");
    b.write("3\n");
    REQUIRE(b.wait(3));
    CHECK(b.lines == std::vector<std::string>{"1", "2", "3"});
    std::filesystem::remove(b.path);
    b.write("4\n");
    REQUIRE(b.wait(4));
    CHECK(b.lines.back() == "4");
}

TEST_CASE("a file that comes later is read whole", "[fault]") {
    bench b;
    b.start(file_follower::start::end);
    b.write("first\n");
    REQUIRE(b.wait(1));
    CHECK(b.lines.back() == "first");
}

TEST_CASE("garbage never stops it", "[fault]") {
    bench b;
    b.write("");
    b.start(file_follower::start::end);
    std::string noise(200'000, '\xff');
    for (std::size_t n = 0; n < noise.size(); n += 97) noise[n] = '\0';
    b.write(noise + "\n" + std::string(30'000, 'x') + "\nafter\n");
    REQUIRE(b.wait(3));
    CHECK(b.lines.back() == "after");
    CHECK(b.follower->counters().cut == 2);
}

TEST_CASE("what was written while nobody followed can be read", "[fault]") {
    bench b;
    b.write("seen\nmissed 1\nmissed 2\n");
    b.start(file_follower::start::end);
    std::vector<std::string> gap;
    const auto keep = [&](const log_line& line) { gap.emplace_back(line.raw); };
    const auto missed = [&](std::uint64_t from) {
        return read_missed(b.path, {b.follower->inode(), from, "s"}, b.follower->inode(),
                           b.follower->started_at(), keep);
    };
    CHECK(missed(5));
    CHECK(gap == std::vector<std::string>{"missed 1", "missed 2"});
    CHECK(missed(b.follower->started_at()));
    CHECK(gap.size() == 2);
}

TEST_CASE("what was missed is read through a rotation and a cut", "[fault]") {
    bench b;
    b.write("seen\nmissed 1\n");
    struct stat s {};
    REQUIRE(::stat(b.path.c_str(), &s) == 0);
    const log_place last{s.st_ino, 5, "old"};
    std::vector<std::string> lines, streams;
    const auto keep = [&](const log_line& line) {
        lines.emplace_back(line.raw);
        streams.emplace_back(line.stream);
    };
    const auto missed = [&] {
        lines.clear();
        streams.clear();
        return read_missed(b.path, last, b.follower->inode(), b.follower->started_at(), keep);
    };
    SECTION("rotated") {
        std::filesystem::rename(b.path, b.dir / GENERATE("log.1", "log-20261126"));
        b.write("missed 2\n");
        b.start(file_follower::start::end);
        CHECK(missed());
        CHECK(lines == std::vector<std::string>{"missed 1", "missed 2"});
        CHECK(streams[0] == "old");
        const auto before = streams;
        CHECK(missed());
        CHECK(streams == before);  // the same lines, by the same names
    }
    SECTION("rotated away") {
        std::filesystem::rename(b.path, b.dir / "elsewhere");
        b.write("missed 2\n");
        b.start(file_follower::start::end);
        CHECK_FALSE(missed());
        CHECK(lines == std::vector<std::string>{"missed 2"});
    }
    SECTION("cut in place") {
        std::filesystem::resize_file(b.path, 0);
        b.write("m 2\n");
        b.start(file_follower::start::end);
        CHECK_FALSE(missed());
        CHECK(lines == std::vector<std::string>{"m 2"});
        CHECK(streams[0] != "old");
    }
}

TEST_CASE("the GPU map reads what the driver prints", "[fault]") {
    bench b;
    const auto at = b.dir / "proc/driver/nvidia/gpus/0000:5D:00.0";
    std::filesystem::create_directories(at);
    std::ofstream(at / "information")
        << "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-1\nDevice Minor: \t 3\nnonsense\n";
    gpu_map map;
    map.refresh(b.dir);
    REQUIRE(map.find("0000:5d:00"));
    CHECK(map.find("0000:5d:00")->minor == 3);
    CHECK(map.find("0000:5d:00")->uuid == "GPU-1");
    CHECK_FALSE(map.find("0000:5e:00"));
    std::filesystem::remove_all(b.dir / "proc");
    map.refresh(b.dir);
    CHECK(map.find("0000:5d:00")->minor == 3);  // a lost card leaves /proc, not our memory
}

TEST_CASE("what is no log of root's is not read, until it is one", "[fault]") {
    bench b;
    b.write("one\n");
    b.start(file_follower::start::beginning);
    REQUIRE(b.wait(1));
    std::filesystem::remove(b.path);
    REQUIRE(::mkfifo(b.path.c_str(), 0600) == 0);  // opening it must not block, nor end the follower
    b.pass(std::chrono::milliseconds(100));
    std::filesystem::remove(b.path);
    b.write("open to all\n");
    std::filesystem::permissions(b.path, std::filesystem::perms(0666));
    b.pass(std::chrono::milliseconds(100));
    const auto before = b.lines.size();
    std::filesystem::remove(b.path);
    b.write("two\n");
    REQUIRE(b.wait(before + 1));
    CHECK(b.lines.back() == "two");
}

TEST_CASE("a file that cannot be opened is tried again", "[fault]") {
    bench b;
    b.write("one\n");
    b.start(file_follower::start::beginning);
    REQUIRE(b.wait(1));
    rlimit files{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    const rlimit none{3, files.rlim_max};  // every descriptor that one could get is taken
    std::filesystem::rename(b.path, b.dir / "old");
    b.write("two\n");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    b.pass(std::chrono::milliseconds(2'500));
    const auto during = b.lines.size();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
    CHECK(during == 1);
    REQUIRE(b.wait(2));
    CHECK(b.lines.back() == "two");
}

TEST_CASE("a flood is read in turns, and a line without end is cut", "[fault]") {
    bench b;
    std::string flood;
    for (int n = 0; n < 200'000; ++n) flood += "a.out[4242]: segfault at 0 ip 0 sp 0 error 6 in a.out[5+1]\n";
    b.write(flood + std::string(32u << 20, 'x') + "\nend\n");
    std::size_t longest = 0;
    b.start(file_follower::start::beginning);
    REQUIRE(b.wait(200'002));
    CHECK(b.in_first_turn < 200'000);  // the first turn gave way to others
    for (const auto& line : b.lines) longest = std::max(longest, line.size());
    CHECK(longest <= 8192);
    CHECK(b.lines.back() == "end");
}

}  // namespace test_follower
