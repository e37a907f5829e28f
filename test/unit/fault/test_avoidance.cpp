// SPDX-License-Identifier: BSD-3-Clause
//
// A cable that is up and bad: new jobs are kept off it by a file that the controller alone writes.
#include <banyan/topo/avoid.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "common/file.hpp"
#include "fault/fabric/fabric_plan.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fabric_bench.hpp"

namespace test_avoidance {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

const std::string leaf = "osm_pi_rcv_process: Switch 0xfc6a1c0300000200 MF0;leaf-08:MQM9790/U1 port ";
constexpr std::uint64_t leaf_guid = 0xfc6a1c0300000200;

struct bench : fabric_bench {
    bench() {
        settings.snapshot = (dir / "snapshot").string();
        settings.avoid_pause = std::chrono::milliseconds(50);
        const auto dump = topo::read_dump(read_file(dir / "fabric", 1 << 24).value());
        REQUIRE(topo::save_snapshot(topo::build_fabric(dump.value()), settings.snapshot));
    }
    void flap(int port = 33) {
        const auto seen = [&] {
            std::size_t n = 0;
            for (const auto& i : all()) n += i.seen.size();
            return n;
        };
        const auto before = seen();
        pass(std::chrono::milliseconds(2));  // one a moment is one
        opensm(leaf + std::to_string(port) + " changed state from ACTIVE to DOWN");
        opensm("SUBNET UP");
        REQUIRE(until([&] { return seen() > before && all().back().closed_ms != 0; }));
    }
    std::vector<topo::avoided_link> file() const {
        const auto text = read_file(settings.avoid, 1 << 20);
        return text ? topo::read_avoid(*text).value() : std::vector<topo::avoided_link>();
    }
    bool keeps_off(std::size_t count) {
        return until([&] { return file().size() == count; });
    }
    result<std::string> rule(ruling what, std::uint64_t number = 1) {
        result<std::string> answer = fail(errc::internal, "no answer");
        bool done = false;
        const auto ask = [&]() -> task<void> {
            answer = co_await daemon->rule_on(number, what, "uid 7");
            done = true;
        };
        asio::co_spawn(io, ask(), asio::detached);
        REQUIRE(until([&] { return done; }));
        return answer;
    }
    std::string last(const char* what, std::size_t at = 0) const {
        std::string out;
        const auto now = all();
        for (const auto& a : now.at(at).actions)
            if (a.what == what) out = a.result;
        return out;
    }
};

}  // namespace

TEST_CASE("new jobs are kept off a cable that flaps, and nothing is drained", "[fault]") {
    bench b;
    b.start();
    b.flap();
    b.flap();
    b.pass(std::chrono::milliseconds(200));
    CHECK(b.file().empty());
    CHECK_FALSE(std::filesystem::exists(b.settings.avoid));
    b.flap();
    REQUIRE(b.keeps_off(1));
    REQUIRE(b.until([&] { return !b.last("avoid").empty() && b.all().at(0).state == incident_state::done; }));
    const auto i = b.all().at(0);
    CHECK(b.file().at(0).why == i.id());
    CHECK((b.file().at(0).a == topo::link_port{leaf_guid, 33} ||
           b.file().at(0).b == topo::link_port{leaf_guid, 33}));
    CHECK(i.rule == "bad-cable");
    CHECK(i.avoid_ms != 0);
    CHECK(i.closed_ms != 0);  // it is up
    CHECK(b.last("avoid").starts_with("done: "));
    CHECK(b.slurm.calls.empty());
    CHECK(b.daemon->look().avoided.size() == 1);
    SECTION("until somebody says that it is well, and then for good") {
        REQUIRE(b.rule(ruling::cancel));
        REQUIRE(b.keeps_off(0));
        CHECK(b.last("avoid_end") == "cancelled by uid 7");
        b.flap();
        b.pass(std::chrono::milliseconds(200));
        CHECK(b.file().empty());
        REQUIRE(b.rule(ruling::approve));
        REQUIRE(b.keeps_off(1));
        const auto again = b.rule(ruling::approve);
        REQUIRE_FALSE(again);
        CHECK(again.error().what.find("already") != std::string::npos);
    }
    SECTION("until it is closed by hand") {
        bool done = false;
        const auto close = [&]() -> task<void> {
            (void)co_await b.daemon->close(1, "uid 7");
            done = true;
        };
        asio::co_spawn(b.io, close(), asio::detached);
        REQUIRE(b.until([&] { return done; }));
        CHECK(b.file().empty());
    }
}

TEST_CASE("new jobs are kept off what an earlier controller kept them off", "[fault]") {
    const auto kept = banyan::testing::scratch_path("avoid");
    std::filesystem::create_directories(kept);
    {
        bench b;
        b.start();
        for (int n = 0; n < 3; ++n) b.flap();
        REQUIRE(b.keeps_off(1));
        b.pass(std::chrono::milliseconds(200));
        for (const char* name : {"history.db", "history.db-wal"})
            std::filesystem::copy_file(b.dir / name, kept / name);
    }
    bench b;  // without the file of the first
    for (const char* name : {"history.db", "history.db-wal"})
        std::filesystem::copy_file(kept / name, b.dir / name);
    std::filesystem::remove_all(kept);
    b.start();
    REQUIRE(b.keeps_off(1));
    CHECK(b.file().at(0).why == "f00001");
}

TEST_CASE("a history that is damaged puts no job onto a bad cable", "[fault]") {
    bench b;
    const bool long_ago = GENERATE(true, false);
    std::ofstream(b.settings.history) << std::string(8192, 'z');
    std::vector<cable> two;
    for (const std::uint32_t port : {33, 34}) two.push_back({port - 30, {{"", "", port, leaf_guid}}});
    REQUIRE(write_avoided(b.settings.avoid, two));
    if (long_ago) b.settings.avoid_for = std::chrono::milliseconds(1500);
    b.start();
    b.pass(std::chrono::milliseconds(300));
    CHECK(b.file().size() == 2);
    // Another is added to them, with a number that none of them can have.
    for (int n = 0; n < 3; ++n) b.flap(37);
    if (long_ago) {
        b.pass(std::chrono::milliseconds(1000));
        REQUIRE(b.until([&] { return b.file().size() <= 1; }));
    } else {
        REQUIRE(b.keeps_off(3));
        CHECK(b.all().at(0).number > 2'000'000'000);
        CHECK(b.file().at(0).why != b.file().at(1).why);
    }
}

TEST_CASE("a cable that was well for long enough is let go", "[fault]") {
    bench b;
    b.settings.avoid_for = std::chrono::milliseconds(700);
    b.start();
    for (int n = 0; n < 3; ++n) b.flap();
    REQUIRE(b.until([&] { return !b.last("avoid").empty(); }));
    REQUIRE(b.until([&] { return b.all().at(0).avoid_ms == 0 && !b.last("avoid_end").empty(); }));
    REQUIRE(b.keeps_off(0));
    CHECK(b.last("avoid_end").starts_with("it was well for "));
}

TEST_CASE("in dry run it is said, and the file is left alone", "[fault]") {
    bench b;
    b.settings.dry_run = true;
    b.start();
    for (int n = 0; n < 4; ++n) b.flap();
    REQUIRE(b.until([&] { return !b.last("avoid").empty(); }));
    CHECK(b.last("avoid").starts_with("dry run: "));
    CHECK(b.all().at(0).advice.find("Dry run") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(b.settings.avoid));
    CHECK(std::ranges::count(b.all().at(0).actions, "avoid", &action_record::what) == 1);
}

TEST_CASE("no switch loses more cables than it can spare, unless somebody says so", "[fault]") {
    bench b;
    b.settings.avoid_percent = 1;  // one cable
    b.start();
    for (int n = 0; n < 3; ++n) b.flap(33);
    REQUIRE(b.keeps_off(1));
    for (int n = 0; n < 3; ++n) b.flap(34);
    REQUIRE(b.until([&] { return b.all().size() == 2 && !b.last("avoid", 1).empty(); }));
    CHECK(b.last("avoid", 1).starts_with("held back: 1 of the "));
    CHECK(b.file().size() == 1);
    REQUIRE_FALSE(b.rule(ruling::retry, 2));
    // However often it is tried again, a snapshot that is as it was is not read again.
    CHECK(b.daemon->look().avoided.snapshot_reads() == 1);
    SECTION("by hand") {
        REQUIRE(b.rule(ruling::approve, 2));
        REQUIRE(b.keeps_off(2));
    }
    SECTION("as soon as there is room") {
        REQUIRE(b.rule(ruling::cancel, 1));
        REQUIRE(b.until([&] { return b.file().size() == 1 && b.file().at(0).why == "f00002"; }));
    }
}

TEST_CASE("without a snapshot nobody knows what a switch can spare", "[fault]") {
    bench b;
    std::filesystem::remove(b.settings.snapshot);
    b.start();
    for (int n = 0; n < 3; ++n) b.flap();
    REQUIRE(b.until([&] { return b.last("avoid").starts_with("held back: "); }));
    CHECK_FALSE(std::filesystem::exists(b.settings.avoid));
}

TEST_CASE("a file that cannot be written is said, and tried again", "[fault]") {
    bench b;
    std::filesystem::create_directory(b.settings.avoid);  // nothing replaces it
    b.start();
    for (int n = 0; n < 3; ++n) b.flap();
    REQUIRE(b.until([&] { return b.last("avoid").find("cannot be written") != std::string::npos; }));
    // While it is tried again it says so.
    REQUIRE(b.until([&] { return b.all().at(0).avoid_ms == 0; }));
    std::filesystem::remove(b.settings.avoid);
    REQUIRE(b.keeps_off(1));
}

TEST_CASE("a link that is up and slower is kept off until it is as it was", "[fault]") {
    bench b;
    b.start();
    std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
    std::ofstream out(b.dir / "new");
    std::string section;
    for (std::string line; std::getline(in, line); out << line << "\n") {
        if (line.starts_with("Switch")) section = line;
        const bool here = line.starts_with("[33]") && section.find("leaf-08") != std::string::npos;
        if (here || line.starts_with("[29]\t\"S-fc6a1c0300000200\""))
            if (const auto at = line.find(" 4x"); at != std::string::npos) line.replace(at, 3, " 1x");
    }
    out.close();
    std::filesystem::rename(b.dir / "new", b.dir / "fabric");
    b.opensm("drop_mgr_remove_port: Removed port with GUID:0x1 LID range [24, 24] of node:x");
    b.opensm("SUBNET UP");
    REQUIRE(b.keeps_off(1));
    const auto i = b.all().at(0);
    CHECK(i.reason == "link-slow");
    CHECK(i.rule == "slow-link");
    CHECK(i.cause.find("(1 lanes), was ") != std::string::npos);
    CHECK(i.closed_ms == 0);
    CHECK(well_since(i) == 0);
    std::filesystem::copy_file(banyan::testing::fixture("ib/ibnetdiscover.txt"), b.dir / "fabric",
                               std::filesystem::copy_options::overwrite_existing);
    b.opensm("drop_mgr_remove_port: Removed port with GUID:0x1 LID range [24, 24] of node:x");
    b.opensm("SUBNET UP");
    REQUIRE(b.until([&] { return b.all().at(0).closed_ms != 0; }));
    CHECK(b.all().size() == 1);
}

TEST_CASE("new jobs are kept off a cable of which UFM tells again and again", "[fault]") {
    bench b;
    b.settings.correlation_window = std::chrono::milliseconds(50);
    b.start();
    for (std::size_t n = 0; n < 3; ++n) {
        b.say("ufm.log",
              "2023-12-20 07:46:24 [1] [917] CRITICAL [Hardware] IBPort [Default / Switch: leaf-08 / 1/17/1] "
              "[dev_id: fc6a1c0300000200]: Symbol BER high");
        REQUIRE(b.until([&] { return b.all().size() == 1 && b.all().at(0).lines == n + 1; }));
        b.pass(std::chrono::milliseconds(100));
    }
    REQUIRE(b.keeps_off(1));
    CHECK(b.file().at(0).a == topo::link_port{leaf_guid, 33});
    CHECK(b.all().at(0).rule == "bad-cable");
    CHECK(b.all().at(0).closed_ms == 0);
}

TEST_CASE("UFM's port labels are ports", "[fault]") {
    const auto number = [](std::string label) {
        ufm_event e;
        e.port = std::move(label);
        return e.port_number();
    };
    CHECK(number("1/17/1") == 33);
    CHECK(number("1/4/2") == 8);
    CHECK(number("1/17") == 17);
    CHECK(number("17") == 17);
    for (const char* none : {"", "1/0/1", "1/17/3", "HCA-1", "1/2/3/4", "1/200/1", "999"})
        CHECK(number(none) == 0);
}

}  // namespace test_avoidance
