// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel's ring: each record once, and those that it lost are counted.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "fault/metrics/metrics.hpp"
#include "fault/sources/kmsg_device.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_kmsg_device {

using namespace banyan;
using namespace banyan::fault;

namespace {

// A pipe stands for the device: a record with each write.
class ring {
  public:
    std::filesystem::path path = banyan::testing::scratch_path("kmsg");
    std::vector<std::uint64_t> read, losses;
    std::vector<std::int64_t> when;
    std::int64_t wall_us = 1'700'000'000'000'000, since_boot_us = 3'600'000'000;  // what the clocks show

    /// `held_us`: the stamp of a record that is there already.
    explicit ring(std::optional<std::int64_t> held_us = {}) {
        ::unlink(path.c_str());
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        writer_ = unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (held_us) put(1, *held_us);
        asio::co_spawn(io_, device.run(), asio::detached);
        io_.poll();
    }
    ~ring() { std::filesystem::remove(path); }

    void write(std::uint64_t sequence, std::int64_t stamp_us = 1'000) {
        put(sequence, stamp_us);
        time_.until(io_, [this, had = read.size()] { return read.size() != had; });
    }

    void passes(std::int64_t us) {
        wall_us += us;
        since_boot_us += us;
    }
    std::int64_t ago_ms() const { return wall_us / 1'000 - when.back(); }

    kmsg_device device{path,
                       [this](const log_line& line) {
                           read.push_back(line.position);
                           when.push_back(line.line_ms);
                       },
                       [this](std::uint64_t records) { losses.push_back(records); },
                       {[this] { return wall_us; }, [this] { return since_boot_us; }}};

  private:
    void put(std::uint64_t sequence, std::int64_t stamp_us) {
        const auto record = "2," + std::to_string(sequence) + "," + std::to_string(stamp_us) +
                            ",-;NVRM: Xid (PCI:0000:05:00): 79, x\n SUBSYSTEM=pci\n";
        REQUIRE(::write(writer_.get(), record.data(), record.size()) == static_cast<ssize_t>(record.size()));
    }

    banyan::testing::held_run time_;
    asio::io_context io_;
    unique_fd writer_;
};

}  // namespace

TEST_CASE("records that the ring lost before they were read are counted by their numbers", "[fault]") {
    ring r;
    r.write(1'000);  // what was before is of the time before: the ring's oldest
    r.write(1'001);
    CHECK(r.losses.empty());
    r.write(1'005);
    r.write(1'006);
    r.write(9'006);
    CHECK(r.read == std::vector<std::uint64_t>{1'000, 1'001, 1'005, 1'006, 9'006});
    CHECK(r.losses == std::vector<std::uint64_t>{3, 7'999});
    CHECK(r.device.counters().lost == 8'002);
}

TEST_CASE("how long ago a record was written does not change with the time of day", "[fault]") {
    constexpr std::int64_t second = 1'000'000, minute = 60 * second;
    ring r;
    r.write(1, r.since_boot_us);
    CHECK(r.ago_ms() == 0);
    r.passes(minute);
    r.wall_us += 20 * minute;  // the clock is set
    r.write(2, r.since_boot_us);
    CHECK(r.ago_ms() == 0);
    r.wall_us -= 90 * minute;
    r.write(3, r.since_boot_us - second);
    CHECK(r.ago_ms() == 1'000);
    r.write(4, r.since_boot_us + second);  // from the future is none
    CHECK(r.ago_ms() == 0);
}

TEST_CASE("a record that has just been written is new by whatever clock it is stamped", "[fault]") {
    constexpr std::int64_t second = 1'000'000;
    const std::int64_t apart = GENERATE(-700, 700) * second;
    ring r;
    const auto stamp = [&] { return r.since_boot_us - apart; };
    r.write(1, stamp());
    CHECK(r.ago_ms() == 0);
    r.passes(10 * second);
    r.write(2, stamp());
    CHECK(r.ago_ms() == 0);
    // Read late, it is as old as it is.
    r.write(3, stamp() - 5 * second);
    CHECK(r.ago_ms() == 5'000);
}

TEST_CASE("what the ring held before us is as old as its stamp says", "[fault]") {
    constexpr std::int64_t second = 1'000'000;
    ring r(60 * second);
    REQUIRE(r.when.size() == 1);
    CHECK(r.ago_ms() == (r.since_boot_us - 60 * second) / 1'000);
}

TEST_CASE("lost records are a figure", "[fault]") {
    metrics m;
    m.count_lost(8'002);
    CHECK(m.text().find("banyan_fault_log_lines_lost_total 8002\n") != std::string::npos);
}

}  // namespace test_kmsg_device
