// SPDX-License-Identifier: BSD-3-Clause
//
// Following a file by name: what is appended comes, through truncation, replacement and deletion.
#include <fstream>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <unistd.h>

#include "fault/sources/file_follower.hpp"
#include "fault/sources/gpu_map.hpp"

using namespace banyan;
using namespace banyan::fault;

namespace {

class bench {
  public:
    std::filesystem::path dir =
        std::filesystem::temp_directory_path() / ("banyan-follow-" + std::to_string(::getpid()));
    std::filesystem::path path = dir / "log";
    std::vector<std::string> lines, streams;
    std::unique_ptr<file_follower> follower;

    bench() { std::filesystem::create_directories(dir); }
    ~bench() { std::filesystem::remove_all(dir); }
    void write(const std::string& text) { std::ofstream(path, std::ios::app) << text; }
    void start(file_follower::start from) {
        follower = std::make_unique<file_follower>(path, from, [this](const log_line& line) {
            lines.emplace_back(line.raw);
            streams.emplace_back(line.stream);
        });
        asio::co_spawn(io_, follower->run(), asio::detached);
        io_.poll();
    }
    /// Runs until there are `count` lines; gives up after five seconds.
    bool wait(std::size_t count) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (lines.size() < count && std::chrono::steady_clock::now() < until)
            io_.run_one_for(std::chrono::milliseconds(200));
        return lines.size() == count;
    }

  private:
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
    read_gap(b.path, b.follower->inode(), 5, b.follower->started_at(), "s", keep);
    CHECK(gap == std::vector<std::string>{"missed 1", "missed 2"});
    read_gap(b.path, b.follower->inode() + 1, 5, b.follower->started_at(), "s", keep);
    CHECK(gap.size() == 2);
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
