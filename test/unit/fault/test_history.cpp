// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/history/history.hpp"
#include "fault/incident/engine.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_history {

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

struct scratch {
    std::filesystem::path dir = banyan::testing::scratch_path("history");
    scratch() { std::filesystem::create_directories(dir); }
    ~scratch() { std::filesystem::remove_all(dir); }
};

history open(const std::filesystem::path& path) {
    std::string warning;
    auto h = history::open(path, warning);
    REQUIRE(h);
    return std::move(*h);
}

}  // namespace

TEST_CASE("what is kept is there again, and nothing is done twice", "[fault]") {
    scratch s;
    const auto path = s.dir / "deep" / "history.db";
    const auto e = event_of(gpu_line(3, "79, x"), 1'000'000, 17);
    engine live;
    const auto number = live.absorb(e, 1'000'001).number;
    live.find(number)->node_out_ms = 1'000'050;
    {
        auto h = open(path);
        CHECK_FALSE(*h.knows(e));
        REQUIRE(h.keep({{e, number}}, {*live.find(number)}));
        REQUIRE(h.keep({{e, number}}, {*live.find(number)}));  // again: no harm
        REQUIRE(h.set_cursor("n03", {"boot", "stream", UINT64_MAX, 4096}));
        REQUIRE(h.set_flag("breaker", true));
    }
    auto h = open(path);
    CHECK(*h.knows(e));
    const auto kept = h.incidents(10, 10, 10);
    REQUIRE(kept);
    REQUIRE(kept->size() == 1);
    CHECK(kept->front().cause == "Xid 79 GPU 3 fell off the bus");
    CHECK(h.find(number)->has_value());
    CHECK_FALSE(h.find(999)->has_value());
    CHECK(*h.taken_since(0) == std::map<std::string, std::int64_t>{{"n03", 1'000'050}});
    CHECK(h.taken_since(1'000'050)->empty());
    auto returned = kept->front();
    returned.closed_ms = 1'000'100;
    REQUIRE(h.keep(returned));
    CHECK(h.taken_since(0)->empty());
    const auto where = h.cursor_of("n03");
    REQUIRE((where && *where));
    CHECK((*where)->inode == UINT64_MAX);
    CHECK((*where)->position == 4096);
    CHECK_FALSE(h.cursor_of("n99")->has_value());
    CHECK(*h.flag("breaker"));
    engine again;
    for (auto i : *kept) again.restore(std::move(i));
    CHECK(again.absorb(event_of(gpu_line(1, "79, x"), 1'000'000, 0, "n09"), 0).number == number + 1);
}

TEST_CASE("a history is root's alone to read, whatever the umask, also one that is there", "[fault]") {
    scratch s;
    const auto mask = ::umask(0);
    for (const bool is_there : {false, true}) {
        const auto path = s.dir / "history.db";
        if (is_there) std::filesystem::permissions(path, std::filesystem::perms(0644));
        auto h = open(path);
        REQUIRE(h.set_flag("breaker", true));
        for (const char* rest : {"", "-wal", "-shm"}) {
            CAPTURE(rest);
            CHECK(std::filesystem::status(path.string() + rest).permissions() ==
                  std::filesystem::perms(0600));
        }
    }
    ::umask(mask);
}

TEST_CASE("what can still change is read back, however much came later", "[fault]") {
    scratch s;
    auto h = open(s.dir / "history.db");
    engine live;
    const auto incident_on = [&](const char* node) {
        return *live.find(live.absorb(event_of(gpu_line(1, "79, x"), 1'000'000, 0, node), 1'000'001).number);
    };
    auto held = incident_on("n01"), out = incident_on("n02"), avoided = incident_on("n03"),
         returned = incident_on("n04");
    held.state = incident_state::held;
    auto alert = incident_on("n05"), newer = incident_on("n06"), told = incident_on("n07");
    for (auto* i : {&alert, &newer, &told}) i->state = incident_state::done;
    told.reason = "job-failed";
    for (auto* i : {&out, &avoided, &returned}) i->state = incident_state::done;
    out.node_out_ms = returned.node_out_ms = avoided.avoid_ms = 1'000'050;
    returned.closed_ms = 1'000'100;
    for (const auto& i : {held, out, avoided, returned, alert, newer, told}) REQUIRE(h.keep(i));
    auto later = returned;
    for (later.number = 100; later.number < 110; ++later.number) REQUIRE(h.keep(later));
    const auto kept = h.incidents(2, 1, 1);
    REQUIRE(kept);
    std::vector<std::uint64_t> numbers;
    for (const auto& i : *kept) numbers.push_back(i.number);
    CHECK(numbers ==
          std::vector<std::uint64_t>{held.number, out.number, avoided.number, newer.number, 108, 109});
}

TEST_CASE("applications that fail keep no other incident from being read back", "[fault]") {
    scratch s;
    auto h = open(s.dir / "history.db");
    engine live;
    std::int64_t at = 1'000'000;
    const auto keep = [&](const std::string& line, const char* node, std::uint32_t job = 0) {
        auto e = event_of(line, at += 31'000, 0, node);
        e.job = job;
        auto& i = *live.find(live.absorb(e, at).number);
        i.state = incident_state::done;
        if (node == std::string("n01")) i.cancelled_by = "root";
        REQUIRE(h.keep(i));
        return i.number;
    };
    const auto cancelled = keep(gpu_line(1, "48, DBE"), "n01"), alert = keep(gpu_line(1, "122, SPI"), "n02"),
               contained = keep(gpu_line(1, "94, Contained"), "n03"),
               of_a_job = keep(gpu_line(1, "31, MMU Fault"), "n04", 7);
    std::uint64_t newest = 0;
    for (int n = 0; n < 20; ++n) newest = keep(gpu_line(1, "13, Graphics Exception"), "n05");
    const auto kept = h.incidents(1, 2, 1);
    REQUIRE(kept);
    std::vector<std::uint64_t> numbers;
    for (const auto& i : *kept) numbers.push_back(i.number);
    CHECK(numbers == std::vector<std::uint64_t>{cancelled, alert, contained, of_a_job, newest});
}

namespace {

/// The files beside it that were put aside.
std::vector<std::filesystem::path> aside(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> out;
    for (const auto& f : std::filesystem::directory_iterator(path.parent_path())) {
        const auto name = f.path().string();
        if (name.starts_with(path.string() + ".damaged-") && !name.ends_with("-wal") &&
            !name.ends_with("-shm"))
            out.push_back(f.path());
    }
    return out;
}

}  // namespace

TEST_CASE("a damaged history is put aside", "[fault]") {
    scratch s;
    const auto path = s.dir / "history.db";
    std::ofstream(path) << std::string(8192, 'z');
    std::string warning;
    auto h = history::open(path, warning);
    REQUIRE(h);
    CHECK(warning.find("damaged") != std::string::npos);
    CHECK(warning.find("circuit breaker") != std::string::npos);
    CHECK(warning.find("limits") != std::string::npos);
    CHECK(h->set_flag("breaker", true));
    CHECK(aside(path).size() == 1);
    // Another time: the first one stays, and no number comes again.
    const auto first = h->first_number().value();
    CHECK(first > 2'000'000'000);
    h = banyan::fail(banyan::errc::internal, "closed");
    CHECK(history::open(path, warning)->first_number() == first);
    std::ofstream(path) << std::string(8192, 'z');
    for (const char* rest : {"-wal", "-shm"}) std::filesystem::remove(path.string() + rest);
    h = history::open(path, warning);
    REQUIRE(h);
    CHECK(aside(path).size() == 2);
    CHECK(h->first_number().value() >= first);
}

namespace {

/// The first of a table's pages: they are made in this order.
enum class first_page : std::uint8_t { incidents = 2, events, cursors, agents, flags };

void damage(const std::filesystem::path& path, first_page which) {
    constexpr std::streamoff page = 4096;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((static_cast<std::streamoff>(which) - 1) * page);
    file << std::string(page, 'z');
}

}  // namespace

TEST_CASE("a history with a damaged page is put aside as well", "[fault]") {
    scratch s;
    const auto path = s.dir / "history.db";
    const auto e = event_of(gpu_line(3, "79, x"), 1'000'000, 17);
    engine live;
    const auto number = live.absorb(e, 1'000'001).number;
    {
        auto h = open(path);
        REQUIRE(h.keep({{e, number}}, {*live.find(number)}));
        REQUIRE(h.set_cursor("n03", {"boot", "stream", 1, 4096}));
        REQUIRE(h.note_agent("n03"));
        REQUIRE(h.set_flag("breaker", true));
    }
    std::string warning;
    SECTION("of what a start reads") {
        damage(path,
               GENERATE(first_page::incidents, first_page::cursors, first_page::agents, first_page::flags));
        auto h = history::open(path, warning);
        REQUIRE(h);
        CHECK(warning.find("damaged") != std::string::npos);
        CHECK(aside(path).size() == 1);
        CHECK(h->first_number().value() > number);
        const auto kept = h->incidents(10, 10, 10);
        REQUIRE(kept);
        CHECK(kept->empty());
        CHECK(h->taken_since(0));
        CHECK_FALSE(*h->flag("breaker"));
        CHECK(h->agents()->empty());
        CHECK(h->keep({{e, number}}, {*live.find(number)}));
    }
    SECTION("events alone cost the incidents nothing") {
        damage(path, first_page::events);
        auto h = history::open(path, warning);
        REQUIRE(h);
        CHECK(warning.empty());
        CHECK_FALSE(h->knows(e));
        CHECK_FALSE(h->keep({{e, number}}, {}));
        CHECK(h->keep(*live.find(number)));
        CHECK(h->incidents(10, 10, 10)->size() == 1);
        CHECK(aside(path).empty());
        CHECK(h->first_number() == 1);
    }
}

TEST_CASE("a place that cannot be written is said", "[fault]") {
    std::string warning;
    const auto h = history::open("/proc/nowhere/history.db", warning);
    REQUIRE_FALSE(h);
    CHECK(h.error().what.find("/proc/nowhere/history.db") != std::string::npos);
}

}  // namespace test_history
