// SPDX-License-Identifier: BSD-3-Clause
//
// A port of an HCA that was lost in an earlier life of the node's agent, and is up in the next one.
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fault/agent/agent.hpp"
#include "test/unit/fault/talk_bench.hpp"

namespace test_port_return {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using hardware::hca_event;
using hardware::hca_news;

namespace {

constexpr const char* card = "0000:3b:00";
const std::vector<std::string> port_1{"mlx5_0 1"};

hca_event port_is(hca_news news, std::uint32_t number = 1, const char* device = "mlx5_0",
                  const char* bdf = "0000:3b:00.0") {
    return {device, bdf, number, news};
}

bool is_return(const std::optional<kernel_fault>& f) {
    return f && f->code == static_cast<std::uint32_t>(catalog::symptom::hca_port_up) && f->device == card;
}

event loss_of(const std::string& name) {
    event e;
    e.fault =
        symptom_at(catalog::symptom::hca_port_down, "0000:3b:00.0", "mlx5_0", "HCA: the link went down");
    e.fault.port = name;
    e.node = "n03";
    e.boot_id = "an earlier boot";
    e.stream = "s";
    e.position = 1;
    e.line_ms = clock::wall_ms() - 60'000;
    e.text = e.fault.message;
    return e;
}

}  // namespace

TEST_CASE("a port that an earlier agent lost is told when it is up", "[fault]") {
    hca_links links;
    SECTION("at the first look") {
        CHECK_FALSE(links.expect(card, port_1));
        CHECK_FALSE(links.after(port_is(hca_news::is_down, 2)));  // nobody put a cable there
        CHECK(is_return(links.after(port_is(hca_news::is_up))));
        CHECK(links.after_look(true).empty());
    }
    SECTION("which was before the controller said what is expected") {
        CHECK_FALSE(links.after(port_is(hca_news::is_up)));
        CHECK(links.after_look(true).empty());
        CHECK(is_return(links.expect(card, port_1)));
        CHECK_FALSE(links.expect(card, port_1));  // said again with each connection
    }
    SECTION("later") {
        CHECK_FALSE(links.expect(card, port_1));
        CHECK_FALSE(links.after(port_is(hca_news::is_down)));
        CHECK(is_return(links.after(port_is(hca_news::port_up))));
    }
    SECTION("with the last of several") {
        CHECK_FALSE(links.expect(card, {"mlx5_0 1", "mlx5_1 1"}));
        CHECK_FALSE(links.after(port_is(hca_news::is_up)));
        CHECK(is_return(links.after(port_is(hca_news::is_up, 1, "mlx5_1", "0000:3b:00.1"))));
    }
    SECTION("not one that this life told of itself") {
        (void)links.after(port_is(hca_news::is_up));
        CHECK(links.after(port_is(hca_news::port_down)));
        CHECK(is_return(links.after(port_is(hca_news::port_up))));
        CHECK_FALSE(links.expect(card, port_1));  // the controller has not heard of it yet
    }
    SECTION("not by nonsense") {
        CHECK_FALSE(links.after(port_is(hca_news::is_up)));
        for (const auto* name : {"", " ", "mlx5_0", "mlx5_0 x", "mlx5_9 1"})
            CHECK_FALSE(links.expect(card, {name}));
    }
}

TEST_CASE("a card of which a port was lost that nobody named is well when all its ports are up", "[fault]") {
    hca_links links;
    SECTION("all of them were looked at") {
        CHECK_FALSE(links.expect(card, {}));
        CHECK_FALSE(links.after(port_is(hca_news::is_up)));  // there may be more
        CHECK_FALSE(links.after(port_is(hca_news::is_up, 1, "mlx5_1", "0000:3b:00.1")));
        CHECK(links.after_look(false).empty());  // a device could not be looked at
        const auto back = links.after_look(true);
        REQUIRE(back.size() == 1);
        CHECK(is_return(back[0]));
        CHECK(links.after_look(true).empty());
    }
    SECTION("looked at before") {
        (void)links.after(port_is(hca_news::is_up));
        (void)links.after_look(true);
        CHECK(is_return(links.expect(card, {})));
    }
    SECTION("one is down still") {
        (void)links.after(port_is(hca_news::is_up));
        (void)links.after(port_is(hca_news::is_down, 2));
        (void)links.after_look(true);
        CHECK_FALSE(links.expect(card, {}));
        CHECK(is_return(links.after(port_is(hca_news::port_up, 2))));
    }
    SECTION("there is none") {
        CHECK_FALSE(links.expect(card, {}));
        CHECK(links.after_look(true).empty());
    }
}

TEST_CASE("a port is looked for at its card, whatever its device is called since", "[fault]") {
    hca_links links;
    const auto own = [&](hca_news news) { return links.after(port_is(news, 1, "mlx5_1")); };
    const auto others = [&] { return links.after(port_is(hca_news::is_up, 1, "mlx5_0", "0000:5d:00.0")); };
    SECTION("another card has the name") {
        CHECK_FALSE(links.expect(card, port_1));
        CHECK_FALSE(others());
        CHECK_FALSE(own(hca_news::is_up));
    }
    SECTION("it had when the controller said what is expected") {
        CHECK_FALSE(others());
        CHECK_FALSE(own(hca_news::is_up));
        CHECK_FALSE(links.expect(card, port_1));
    }
    SECTION("none has") {
        CHECK_FALSE(links.expect(card, port_1));
        CHECK_FALSE(own(hca_news::is_up));
    }
    CHECK(links.after_look(false).empty());
    const auto back = links.after_look(true);
    REQUIRE(back.size() == 1);
    CHECK(is_return(back[0]));
    CHECK(links.after_look(true).empty());
}

TEST_CASE("a port that is not told anew is not known", "[fault]") {
    hca_links links;
    (void)links.after(port_is(hca_news::is_up));
    (void)links.after(port_is(hca_news::is_up, 1, "mlx5_1", "0000:3b:00.1"));
    (void)links.after_look(true);
    links.nobody_listens();
    CHECK_FALSE(links.expect(card, {}));
    CHECK_FALSE(links.after(port_is(hca_news::is_up)));
    SECTION("it was lost meanwhile") {
        CHECK(links.after(port_is(hca_news::is_down, 1, "mlx5_1", "0000:3b:00.1")));
        CHECK(links.after_look(true).empty());
        CHECK(is_return(links.after(port_is(hca_news::port_up, 1, "mlx5_1", "0000:3b:00.1"))));
    }
    SECTION("it is well") {
        CHECK_FALSE(links.after(port_is(hca_news::is_up, 1, "mlx5_1", "0000:3b:00.1")));
        CHECK(links.after_look(true).size() == 1);
    }
    SECTION("it has another name") {
        CHECK_FALSE(links.after(port_is(hca_news::is_up, 1, "mlx5_7", "0000:3b:00.1")));
        CHECK(links.after_look(true).size() == 1);
    }
    SECTION("it is gone") { CHECK(links.after_look(true).empty()); }
}

TEST_CASE("an incident keeps which ports are down until they are up", "[fault]") {
    engine e;
    const auto number = e.absorb(loss_of("mlx5_0 1"), 1).number;
    auto other = loss_of("mlx5_1 1");
    other.position = 2;
    const auto sent = event_from(nlohmann::json::parse(to_json(other).dump()));
    REQUIRE(sent);
    CHECK(e.absorb(*sent, 2).number == number);
    CHECK(e.find(number)->ports == std::vector<std::string>{"mlx5_0 1", "mlx5_1 1"});
    const auto kept = incident_from(to_json(*e.find(number)));
    REQUIRE(kept);
    CHECK(kept->ports == e.find(number)->ports);
    // The node was started again meanwhile.
    auto back = loss_of("mlx5_1 1");
    back.fault =
        symptom_at(catalog::symptom::hca_port_up, "0000:3b:00.0", "mlx5_0", "HCA: the link is up again");
    back.boot_id = "this boot";
    back.position = 3;
    CHECK(e.absorb(back, 3).number == number);
    CHECK(e.find(number)->closed_by == fabric_is_back);
    CHECK(e.find(number)->ports.empty());
}

TEST_CASE("an incident of a port ends with the next agent, who finds it up", "[fault]") {
    talk_bench b(true);
    const auto* const name = GENERATE("mlx5_0 1", "");
    CAPTURE(name);
    (void)b.live({loss_of(name)});
    auto own = b.agent_settings();
    own.hca_events = true;
    own.look_program = (b.dir / "look").string();
    const auto up = to_json(port_is(hca_news::is_up)).dump();
    std::ofstream(own.look_program) << "#!/bin/sh\n[ \"$2\" = hca-events ] || exit 1\necho '" << up
                                    << "'\necho '{\"devices\":1,\"blind\":[]}'\nexec sleep 1000\n";
    ::chmod(own.look_program.c_str(), 0700);
    const std::ofstream log(own.kmsg);
    life l(b);
    REQUIRE(l.first());
    CHECK(l.first()->closed_ms == 0);
    asio::thread_pool pool(2);
    agent a(l.io, pool, own, std::make_shared<metrics>());
    a.start();
    CHECK(l.until([&] { return l.first()->closed_ms != 0; }));
    CHECK(l.first()->closed_by == fabric_is_back);
    CHECK(l.c.incidents().all().size() == 1);
    pool.join();
}

}  // namespace test_port_return
