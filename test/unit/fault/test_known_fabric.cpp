// SPDX-License-Identifier: BSD-3-Clause
//
// What counts as the fabric: it grows by what is added, and no fault, restart or snapshot takes anything from
// it.
#include <set>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "common/file.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fabric_bench.hpp"

namespace test_known_fabric {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

/// leaf-08 has spine-01 at its ports 33 to 36, spine-02 at 37 to 40.
struct changes {
    std::set<int> without{}, slow{};  // ports of leaf-08
    std::string no_host{};
};

std::string fabric_with(const changes& c) {
    const auto of = [](const std::set<int>& ports, const std::string& line, bool in_leaf) {
        return std::ranges::any_of(ports, [&](int port) {
            const auto text = "[" + std::to_string(port) + "]";
            return (in_leaf && line.starts_with(text + "\t")) ||
                   line.find("\"S-fc6a1c0300000200\"" + text) != std::string::npos;
        });
    };
    std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
    std::string out, section;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("Switch")) section = line;
        const bool in_leaf = section.find("leaf-08") != std::string::npos;
        if (!c.no_host.empty() && line.find(c.no_host) != std::string::npos) continue;
        if (of(c.without, line, in_leaf)) continue;
        if (of(c.slow, line, in_leaf))
            if (const auto at = line.find(" 4x"); at != std::string::npos) line.replace(at, 3, " 1x");
        out += line + "\n";
    }
    return out;
}

/// Controllers over one fabric, one after the other.
struct cluster_of_links {
    std::filesystem::path kept = banyan::testing::scratch_path("known");
    std::unique_ptr<fabric_bench> b;
    bool with_snapshot = false;
    std::set<std::string> lost{};  // files that a restart does not find again
    std::string rule{};            // beside the shipped ones

    cluster_of_links() { std::filesystem::create_directories(kept); }
    ~cluster_of_links() { std::filesystem::remove_all(kept); }
    cluster_of_links(const cluster_of_links&) = delete;

    void show(const changes& c) {
        std::ofstream(b->dir / "new") << fabric_with(c);
        std::filesystem::rename(b->dir / "new", b->dir / "fabric");
    }
    std::size_t looks() const {
        const auto text = read_file(b->dir / "looks", 1 << 20);
        return text ? text->size() : 0;
    }
    void after_look(std::size_t before) {
        REQUIRE(b->until([&] { return looks() > before; }));
        b->pass(std::chrono::milliseconds(400));
    }
    void look() {
        const auto before = looks();
        b->opensm("drop_mgr_remove_port: Removed port with GUID:0x1 LID range [24, 24] of node:x");
        b->opensm("SUBNET UP");
        after_look(before);
    }
    void start(const changes& c) {
        b = std::make_unique<fabric_bench>();
        if (!rule.empty()) b->rules = parse_policy("site.toml", rule).rules.value();
        for (const auto& file : std::filesystem::directory_iterator(kept))
            if (!lost.contains(file.path().filename()))
                std::filesystem::copy_file(file.path(), b->dir / file.path().filename());
        show(c);
        if (with_snapshot) {
            // As the timer writes it: what is there now.
            b->settings.snapshot = (b->dir / "snapshot").string();
            REQUIRE(topo::save_snapshot(topo::build_fabric(topo::read_dump(fabric_with(c)).value()),
                                        b->settings.snapshot));
        }
        b->settings.fabric_dump_command = {
            "sh", "-c",
            "printf x >> " + (b->dir / "looks").string() + "; exec cat " + (b->dir / "fabric").string()};
        b->start();
        after_look(0);
    }
    void stop() {
        b->pass(std::chrono::milliseconds(200));
        std::filesystem::remove_all(kept);
        std::filesystem::create_directories(kept);
        for (const char* name : {"history.db", "history.db-wal", "fabric.accepted"})
            if (std::filesystem::exists(b->dir / name))
                std::filesystem::copy_file(b->dir / name, kept / name);
        b.reset();
    }
    void close(std::uint64_t number) {
        bool done = false;
        const auto before = looks();
        const auto ask = [&]() -> task<void> {
            (void)co_await b->daemon->close(number, "uid 7");
            done = true;
        };
        asio::co_spawn(b->io, ask(), asio::detached);
        REQUIRE(b->until([&] { return done; }));
        after_look(before);
    }
    std::vector<incident> all() const { return b->all(); }
};

}  // namespace

TEST_CASE("what is added is watched while something else is missing", "[fault]") {
    fabric_memory watched;
    const auto missing = [&](const changes& c) {
        std::set<std::string> out;
        const auto found = watched.compare(fabric_with(c));
        REQUIRE(found);
        for (const auto& f : *found) out.insert(f.object.text());
        return out;
    };
    CHECK(missing({.without = {34}}).empty());
    CHECK(missing({.without = {33, 34}}).size() == 1);
    CHECK(missing({.without = {33}}).size() == 1);  // 34 is new
    const auto both = missing({.without = {33, 34}});
    REQUIRE(both.size() == 2);
    CHECK(both.begin()->find("port 33") != std::string::npos);
    CHECK(both.rbegin()->find("port 34") != std::string::npos);
    CHECK(missing({}).empty());
}

TEST_CASE("a look names hosts as banyan.conf has them", "[fault]") {
    std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
    std::string map, guid;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("caguid=")) guid = line.substr(7);
        const auto device = line.find("\"gpu0007 ");
        if (line.starts_with("Ca") && device != std::string::npos)
            map += guid + " \"n07" + line.substr(device + 8) + "\n";
    }
    cluster_of_links folder;
    const auto names = folder.kept / "names.map";
    REQUIRE(write_file_atomic(names, map));
    fabric_memory watched;
    REQUIRE(watched.compare(fabric_with({}), {}, {names.string(), ""}));
    const auto found = watched.compare(fabric_with({.no_host = "gpu0007"}), {}, {names.string(), ""});
    REQUIRE(found);
    REQUIRE(found->size() == 1);
    CHECK(found->front().object.text().find("n07") != std::string::npos);
    CHECK_FALSE(watched.compare(fabric_with({}), {}, {(folder.kept / "none").string(), ""}));
}

TEST_CASE("a fabric of which more than half is gone is seen again once that is given up", "[fault]") {
    const auto without = [](int first_host) {
        std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
        std::string out;
        bool skip = false;
        for (std::string line; std::getline(in, line);) {
            if (line.empty()) skip = false;
            const auto at = line.find("\"gpu");
            const bool gone = at != std::string::npos && std::stoi(line.substr(at + 4, 4)) >= first_host;
            skip |= gone && line.starts_with("Ca");
            if (!gone && !skip) out += line + "\n";
        }
        return out;
    };
    fabric_memory watched;
    REQUIRE(watched.compare(without(99)));
    const auto one_by_one = watched.compare(without(9));
    REQUIRE(one_by_one);
    REQUIRE(one_by_one->size() == 8);
    std::vector<object> hosts;
    for (const auto& f : *one_by_one) hosts.push_back(f.object);
    CHECK_FALSE(watched.compare(without(8)));
    CHECK_FALSE(watched.compare(without(1), hosts));  // more likely this host's own link
    const auto left = watched.compare(without(8), hosts);
    REQUIRE(left);
    CHECK(left->size() == 1);
}

TEST_CASE("no restart makes a fault of the fabric normal", "[fault]") {
    cluster_of_links c;
    c.with_snapshot = GENERATE(true, false);
    if (GENERATE(true, false)) c.lost = {"fabric.accepted"};
    INFO((c.with_snapshot ? "with" : "without")
         << " a snapshot, " << (c.lost.empty() ? "with" : "without") << " the accepted fabric");
    struct {
        changes broken;
        std::string reason;
    } const cases[] = {{{.without = {33}}, "fabric-link"},
                       {{.slow = {33}}, "link-slow"},
                       {{.no_host = "gpu0007"}, "host-lost"}};
    const auto& one = cases[GENERATE(0, 1, 2)];
    INFO(one.reason);
    c.start({});
    REQUIRE(c.all().empty());
    c.show(one.broken);
    c.look();
    REQUIRE(c.all().size() == 1);
    CHECK(c.all()[0].reason == one.reason);
    for (int restart = 0; restart < 2; ++restart) {
        c.stop();
        c.start(one.broken);
        REQUIRE(c.all().size() == 1);
        CHECK(c.all()[0].closed_ms == 0);
        CHECK(c.all()[0].closed_by.empty());
        c.look();
        CHECK(c.all()[0].closed_ms == 0);
    }
    c.show({});
    c.look();
    REQUIRE(c.all().size() == 1);
    CHECK(c.all()[0].closed_by == fabric_is_back);
    CHECK(c.all()[0].cause.find("not known") == std::string::npos);
    c.show(one.broken);
    c.look();
    REQUIRE(c.all().size() == 1);
    CHECK(c.all()[0].closed_ms == 0);
    CHECK(c.all()[0].flaps == 1);
}

TEST_CASE("what is closed by hand is no part of the fabric until it is seen again", "[fault]") {
    cluster_of_links c;
    const bool restarted = GENERATE(true, false);
    c.start({});
    const changes broken{.without = {33}, .slow = {35}};
    c.show(broken);
    c.look();
    REQUIRE(c.all().size() == 2);
    for (const auto number : {1u, 2u}) c.close(number);
    if (restarted) {
        c.stop();
        c.start(broken);
    }
    c.look();
    REQUIRE(c.all().size() == 2);
    for (const auto& i : c.all()) CHECK(i.closed_by == "uid 7");
    c.show({});
    c.look();
    c.show({.without = {33}});
    c.look();
    const auto open = std::ranges::count_if(c.all(), [](const incident& i) { return i.closed_ms == 0; });
    CHECK(open == 1);
}

TEST_CASE("a host that was taken out can be given up, and is not by its return", "[fault]") {
    cluster_of_links c;
    c.rule = "[[rule]]\nname = \"lost\"\nreason = \"host-lost\"\naction = \"drain\"\n";
    c.start({});
    c.b->slurm.nodes["gpu0007"] = {"gpu0007", false, false, ""};
    c.show({.no_host = "gpu0007"});
    c.look();
    REQUIRE(c.b->until([&] { return c.b->has(1, true) && c.all()[0].node_out_ms != 0; }));
    c.b->slurm.nodes["gpu0007"].reason = "banyan: host-lost [f00001]";
    const auto resume = [&] {
        bool done = false;
        const auto ask = [&]() -> task<void> {
            const auto answer = co_await c.b->daemon->resume("gpu0007", "uid 7");
            INFO((answer ? *answer : answer.error().text()));
            CHECK(answer.has_value());
            done = true;
        };
        asio::co_spawn(c.b->io, ask(), asio::detached);
        REQUIRE(c.b->until([&] { return done; }));
    };
    SECTION("by closing it, before its return or after") {
        const bool first = GENERATE(true, false);
        if (first) c.close(1);
        resume();
        if (!first) c.close(1);
        c.look();
        REQUIRE(c.all().size() == 1);
        CHECK(c.all()[0].closed_by == "uid 7");
    }
    SECTION("its return alone") {
        resume();
        CHECK(c.all()[0].closed_by == "uid 7");
        c.look();
        CHECK(c.all()[0].closed_ms == 0);
    }
}

TEST_CASE("a host that Slurm restarts is a note, until Slurm gives it up", "[fault]") {
    cluster_of_links c;
    c.start({});
    c.b->slurm.nodes["gpu0007"].planned = true;
    c.show({.no_host = "gpu0007"});
    c.look();
    REQUIRE(c.all().size() == 1);
    CHECK(c.all()[0].reason == "host-lost");
    CHECK(c.all()[0].severity == severity::notice);
    CHECK(c.all()[0].decided == static_cast<std::uint8_t>(step_kind::none));
    CHECK(c.all()[0].advice.find("Slurm restarts the host") != std::string::npos);
    SECTION("it comes back") {
        c.show({});
        c.look();
        CHECK(c.all()[0].closed_by == fabric_is_back);
        c.b->slurm.nodes["gpu0007"].planned = false;
        c.show({.no_host = "gpu0007"});  // this time nobody meant it
        c.look();
    }
    SECTION("it does not") {
        c.b->slurm.nodes["gpu0007"].planned = false;
        c.look();
        CHECK(c.all()[0].flaps == 0);
    }
    REQUIRE(c.all().size() == 1);
    CHECK(c.all()[0].closed_ms == 0);
    CHECK(c.all()[0].severity == severity::error);
    CHECK(c.all()[0].rule == "host-lost");
    CHECK(c.all()[0].decided == static_cast<std::uint8_t>(step_kind::seal));
}

}  // namespace test_known_fabric
