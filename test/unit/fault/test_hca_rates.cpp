// SPDX-License-Identifier: BSD-3-Clause
//
// Error counters of HCA ports: what is read of a made sysfs tree, and what is made of it.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fault/sources/hca_rates.hpp"
#include "test/scratch_path.hpp"

namespace test_hca_rates {

using namespace banyan;
using namespace banyan::fault;
using namespace std::chrono_literals;
using hardware::port_counters;

namespace {

/// A node's root with one or more HCAs in it.
class made_sysfs {
  public:
    std::filesystem::path root = banyan::testing::scratch_path("hcas");
    made_sysfs() {
        std::filesystem::remove_all(root);
        std::filesystem::create_directories(root / "sys/class");
    }
    ~made_sysfs() { std::filesystem::remove_all(root); }
    std::filesystem::path port(const std::string& device) {
        return root / "sys/class/infiniband" / device / "ports/1";
    }
    void set(const std::string& device, const std::string& file, const std::string& text) {
        const auto path = port(device) / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << "\n";
    }
};

hca_rates rates(const std::string& limit) { return hca_rates({counter_limit_from(limit).value()}); }

std::vector<port_counters> shows(std::uint64_t value, const std::string& counter = "symbol_error") {
    port_counters out{"mlx5_0", "1", "0000:3b:00.0"};
    out.values[counter] = value;
    return {out};
}

const auto start = hca_rates::clock::time_point(1000h);

}  // namespace

TEST_CASE("a counter that rises faster than its limit is told, one that is as fast is not", "[fault]") {
    auto r = rates("symbol_error:120/1h");
    CHECK(r.after_look(shows(50'000), start).excess.empty());  // who knows since when
    CHECK(r.after_look(shows(50'120), start + 30s).excess.empty());
    const auto found = r.after_look(shows(50'121), start + 60s).excess;
    REQUIRE(found.size() == 1);
    CHECK(found[0].rise == 121);
    CHECK(found[0].over == 60s);
    CHECK(found[0].text() ==
          "HCA mlx5_0 port 1: symbol_error rose by 121 within 1 min, more than 120 within 1 h");
    // Told once; and again when as much has come anew.
    CHECK(r.after_look(shows(50'241), start + 90s).excess.empty());
    CHECK(r.after_look(shows(50'242), start + 120s).excess.size() == 1);
}

TEST_CASE("errors that are spread over a longer time are not too many", "[fault]") {
    auto r = rates("symbol_error:120/1h");
    std::uint64_t value = 0;
    for (int minute = 0; minute < 24 * 60; ++minute, value += 2)  // 120 an hour
        REQUIRE(r.after_look(shows(value), start + minute * 60s).excess.empty());
    // A little faster, and the hour's sum tells.
    std::size_t told = 0;
    for (int minute = 24 * 60; minute < 27 * 60; ++minute, value += 3)
        told += r.after_look(shows(value), start + minute * 60s).excess.size();
    CHECK(told >= 2);
    CHECK(told <= 5);
}

TEST_CASE("where looks lie further apart than a limit's time nothing is guessed", "[fault]") {
    auto r = rates("port_rcv_errors:600/1m");
    const auto of = [](std::uint64_t n) { return shows(n, "port_rcv_errors"); };
    CHECK(r.after_look(of(0), start).excess.empty());
    // 600 in each of ten minutes: none had more than 600 for sure.
    CHECK(r.after_look(of(6'000), start + 10min).excess.empty());
    CHECK(r.after_look(of(12'001), start + 20min).excess.size() == 1);
}

TEST_CASE("a counter that begins anew counts what it shows since then", "[fault]") {
    auto r = rates("symbol_error:120/1h");
    CHECK(r.after_look(shows(60'000), start).excess.empty());
    CHECK(r.after_look(shows(100), start + 30s).excess.empty());  // reset, or wrapped: at least 100
    const auto found = r.after_look(shows(121), start + 60s).excess;
    REQUIRE(found.size() == 1);
    CHECK(found[0].rise == 121);
}

TEST_CASE("a counter at its end is told, since it tells of nothing more", "[fault]") {
    auto r = rates("link_downed:2/1h");
    const auto of = [](std::uint64_t n) { return shows(n, "link_downed"); };
    CHECK(r.after_look(of(254), start).blind.empty());
    const auto at_end = r.after_look(of(255), start + 30s);
    CHECK(at_end.excess.empty());
    REQUIRE(at_end.blind.size() == 1);
    CHECK(at_end.blind.begin()->find("link_downed stands at 255") != std::string::npos);
    CHECK(r.after_look(of(0), start + 60s).blind.empty());
    // One of 64 bits goes on.
    CHECK(r.after_look(of(300), start + 90s).blind.empty());
}

TEST_CASE("what vanishes is told, and begins anew when it is back", "[fault]") {
    auto r = rates("symbol_error:120/1h");
    CHECK(r.after_look(shows(10), start).blind.empty());
    const auto gone = r.after_look({}, start + 30s);
    CHECK(gone.blind == std::set<std::string>{"mlx5_0 port 1: it is not there any more"});
    // Meanwhile it counted 1,000, or was another card: nobody knows within which time.
    const auto back = r.after_look(shows(1'010), start + 60s);
    CHECK(back.blind.empty());
    CHECK(back.excess.empty());
    CHECK(r.after_look(shows(1'131), start + 90s).excess.size() == 1);
    auto unread = shows(5);
    unread[0].values.clear();
    unread[0].unread["symbol_error"] = "cannot read it: Input/output error";
    const auto blind = r.after_look(unread, start + 120s).blind;
    CHECK(blind == std::set<std::string>{"mlx5_0 port 1: symbol_error: cannot read it: Input/output error"});
}

TEST_CASE("limits are read strictly", "[fault]") {
    const auto limit = counter_limit_from("link_error_recovery:5/1m");
    REQUIRE(limit);
    CHECK(limit->counter == "link_error_recovery");
    CHECK(limit->more_than == 5);
    CHECK(limit->within == 1min);
    for (const auto* wrong :
         {"", "symbol_error", "symbol_error:5", "symbol_error/1h", ":5/1h", "../state:5/1h", "a b:5/1h",
          "symbol_error:-1/1h", "symbol_error:x/1h", "symbol_error:5/0s", "symbol_error:5/25h",
          "symbol_error:5/", "symbol_error/1h:5"}) {
        CAPTURE(wrong);
        CHECK_FALSE(counter_limit_from(wrong));
    }
}

TEST_CASE("counters are read of both folders, and what cannot be read says why", "[fault]") {
    made_sysfs sys;
    const std::vector<std::string> names{"symbol_error", "local_ack_timeout_err", "link_downed", "nonsense"};
    CHECK(hardware::read_counters(sys.root, names)->empty());  // a node without HCAs
    sys.set("mlx5_10", "counters/symbol_error", "7");
    sys.set("mlx5_2", "counters/symbol_error", "18446744073709551615");
    sys.set("mlx5_2", "hw_counters/local_ack_timeout_err", "4");
    sys.set("mlx5_2", "counters/link_downed", "N/A (no PMA)");
    std::filesystem::create_symlink("../../../0000:3b:00.0", sys.root / "sys/class/infiniband/mlx5_2/device");
    std::filesystem::create_directories(sys.root / "sys/class/infiniband/mlx5_3");  // no ports
    ::mkfifo((sys.port("mlx5_10") / "counters/link_downed").c_str(), 0600);         // would block
    auto told = hardware::read_counters(sys.root, names);
    REQUIRE(told);
    // What the other process gets is the same.
    told = hardware::counters_from(hardware::to_json(*told));
    REQUIRE(told);
    REQUIRE(told->size() == 3);
    const auto& two = told->at(0);
    CHECK(two.name() == "mlx5_2 port 1");
    CHECK(two.bdf == "0000:3b:00.0");
    CHECK(two.values ==
          std::map<std::string, std::uint64_t>{{"symbol_error", UINT64_MAX}, {"local_ack_timeout_err", 4}});
    CHECK(two.unread.contains("link_downed"));
    CHECK(two.unread.at("nonsense") == "there is no such counter");
    CHECK(told->at(1).name() == "mlx5_3 port ?");
    CHECK(told->at(1).unread.contains(""));
    CHECK(told->at(2).name() == "mlx5_10 port 1");
    CHECK(told->at(2).unread.at("link_downed").find("is no file") != std::string::npos);
    CHECK_FALSE(hardware::read_counters(sys.root / "nowhere", names));
}

}  // namespace test_hca_rates
