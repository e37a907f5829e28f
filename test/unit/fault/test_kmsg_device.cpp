// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel's ring: each record once, and those that it lost are counted.
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
#include "test/unit/fault/metrics_page.hpp"

using namespace banyan;
using namespace banyan::fault;

namespace {

// A pipe stands for the device: a record with each write.
class ring {
  public:
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("banyan-kmsg-" + std::to_string(::getpid()));
    std::vector<std::uint64_t> read, losses;

    ring() {
        ::unlink(path.c_str());
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        writer_ = unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        asio::co_spawn(io_, device.run(), asio::detached);
        io_.poll();
    }
    ~ring() { std::filesystem::remove(path); }

    void write(std::uint64_t sequence) {
        const auto record =
            "2," + std::to_string(sequence) + ",1000,-;NVRM: Xid (PCI:0000:05:00): 79, x\n SUBSYSTEM=pci\n";
        REQUIRE(::write(writer_.get(), record.data(), record.size()) == static_cast<ssize_t>(record.size()));
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        for (const auto had = read.size(); read.size() == had && std::chrono::steady_clock::now() < until;)
            io_.run_one_for(std::chrono::milliseconds(200));
    }

    kmsg_device device{path, [this](const log_line& line) { read.push_back(line.position); },
                       [this](std::uint64_t records) { losses.push_back(records); }};

  private:
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

TEST_CASE("lost records are a figure", "[fault]") {
    metrics m;
    m.count_lost(8'002);
    const auto where = m.serve("127.0.0.1:0");
    REQUIRE(where);
    CHECK(testing::page(*where).find("banyan_fault_log_lines_lost_total 8002\n") != std::string::npos);
}
