// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/child.hpp"
#include "supervisor/output_file.hpp"
#include "supervisor/step_output.hpp"
#include "test/scratch_path.hpp"

namespace test_output_file {

using namespace banyan::supervisor;
using banyan::clock;
using banyan::unique_fd;
using std::chrono::seconds;

namespace {

/// The output of a job, as a batch script has it: open for writing alone.
struct job_output {
    std::string path = banyan::testing::scratch_path("output");
    unique_fd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)};
    ~job_output() { ::unlink(path.c_str()); }

    void run(const std::string& script) const {
        banyan::child_setup setup;
        setup.out = setup.err = fd.get();
        REQUIRE(banyan::child::start({"sh", "-c", script}, setup)->wait().code == 0);
    }
};

using parts = std::vector<std::pair<std::string, clock::time_point>>;

std::optional<parts> read(const output_file& file, clock::time_point now) {
    parts out;
    const auto take = [&](std::string_view bytes, clock::time_point when) { out.emplace_back(bytes, when); };
    return file.read(now, take) ? std::optional(out) : std::nullopt;
}

const clock::time_point start = clock::time_point{} + seconds(1000);

}  // namespace

TEST_CASE("what a step wrote is read with its time", "[supervisor]") {
    const job_output job;
    job.run("echo of the script");
    output_file file(job.fd.get());
    file.begin(start);
    CHECK(file.is_file());
    job.run("echo one");
    file.mark(start + seconds(2));
    job.run("echo two >&2");
    file.mark(start + std::chrono::milliseconds(2500));  // too soon after the last one
    file.mark(start + seconds(4));
    file.mark(start + seconds(6));
    job.run("printf three");
    CHECK(read(file, start + seconds(8)) ==
          parts{{"one\n", start + seconds(2)}, {"two\n", start + seconds(4)}, {"three", start + seconds(8)}});
}

TEST_CASE("what a step wrote long before its end is not read", "[supervisor]") {
    const job_output job;
    output_file file(job.fd.get());
    file.begin(start);
    for (int i = 1; i <= 300; ++i) {
        job.run("echo " + std::to_string(i));
        file.mark(start + seconds(i));
    }
    const auto told = read(file, start + seconds(300));
    REQUIRE(told);
    CHECK(told->front().first == "200\n");
    CHECK(told->size() == 101);
}

TEST_CASE("of what is no file nothing is known", "[supervisor]") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const unique_fd from(ends[0]), to(ends[1]), null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    for (const int fd : {from.get(), to.get(), null.get(), 9999}) {
        output_file file(fd);
        file.begin(start);
        file.mark(start + seconds(2));
        CHECK_FALSE(file.is_file());
        CHECK_FALSE(read(file, start + seconds(4)));
    }
}

TEST_CASE("of a file that was cut, taken away or is too large", "[supervisor]") {
    const job_output job;
    job.run("echo of the script");
    output_file file(job.fd.get());
    file.begin(start);
    job.run("echo one");
    file.mark(start + seconds(2));
    SECTION("cut") {
        REQUIRE(::ftruncate(job.fd.get(), 3) == 0);
        CHECK_FALSE(read(file, start + seconds(4)));
    }
    SECTION("cut, and it grew again") {
        job.run("head -c 100 /dev/zero");
        file.mark(start + seconds(4));
        REQUIRE(::ftruncate(job.fd.get(), 18) == 0);
        job.run("echo other");
        file.mark(start + seconds(6));
        CHECK_FALSE(read(file, start + seconds(8)));
    }
    SECTION("taken away: it is still the one that is written") {
        ::unlink(job.path.c_str());
        job.run("echo two");
        CHECK(read(file, start + seconds(4))->back().first == "two\n");
    }
    SECTION("too large") {
        REQUIRE(::ftruncate(job.fd.get(), output_file::most + 100) == 0);
        CHECK_FALSE(read(file, start + seconds(4)));
    }
}

TEST_CASE("a program's error among the output of others", "[supervisor]") {
    const job_output job;
    output_file file(job.fd.get());
    file.begin(start);
    job.run(
        "for i in 1 2 3 4; do (while :; do printf 'loss 1.2\\r'; done | head -c 3000000) & done; wait;"
        "python3 -c 'import os; undefined_name'; echo 'srun: error: n01: task 1: Exited with exit code 1' "
        ">&2;"
        "head -c 3000000 /dev/urandom");
    step_output told(false);
    REQUIRE(file.read(start + seconds(2), [&](auto bytes, auto when) { told.take(bytes, when); }));
    CHECK(told.end().words ==
          "rank 1 on n01 was the first, with exit code 1; the first error was NameError: name "
          "'undefined_name' is "
          "not defined");
}

}  // namespace test_output_file
