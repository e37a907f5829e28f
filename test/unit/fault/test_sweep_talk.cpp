// SPDX-License-Identifier: BSD-3-Clause
//
// The sweep that a controller asks an agent for, over their connection: by a real agent, and by one that says
// nothing, nonsense, everything twice, or what was asked long ago.
#include <fstream>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fault/agent/agent.hpp"
#include "fault/net/channel.hpp"
#include "test/unit/fault/talk_bench.hpp"

namespace test_sweep_talk {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

policy sweeping_rules() {
    return std::move(*parse_policy("site.toml",
                                   "[[rule]]\nname = \"unfit\"\nswept = \"unfit\"\naction = \"drain\"\n"
                                   "[[rule]]\nname = \"look\"\nxid = 48\naction = \"sweep\"\n"
                                   "[[rule]]\nname = \"out\"\nxid = 79\naction = \"down\"\n")
                          .rules);
}

event xid48(std::uint64_t position = 1) {
    return event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), position);
}

/// An agent's end of the connection, by hand.
class hand_agent {
  public:
    hand_agent(life& of, const talk_bench& b, const std::string& node = "n03")
        : life_(of), port_(b.settings.port) {
        settings_ = peer::settings::of(peer_role, node, b.munged.socket(), false, munge_, of.pool);
        settings_.timeout = 20s;
        asio::co_spawn(of.io, live(), asio::detached);
        REQUIRE(of.until([&] { return here_; }));
    }
    ~hand_agent() {
        link_->close();
        life_.until([&] { return over_; });
        munge_.join();
    }
    hand_agent(const hand_agent&) = delete;
    /// The number of the first request for a sweep.
    std::uint64_t asked() {
        REQUIRE(life_.until([&] { return !requests_.empty(); }));
        return requests_.front();
    }
    void say(json meta) { REQUIRE(link_->send(message::swept, std::move(meta))); }
    void beat(json meta) { REQUIRE(link_->send(message::heartbeat, std::move(meta))); }
    void answer(std::uint64_t request, const char* verdict) {
        say({{"request", request}, {"verdict", verdict}, {"text", std::string("it is ") + verdict}});
    }

  private:
    task<void> live() {
        auto opened = co_await peer::connect_peer("127.0.0.1", port_, "", settings_);
        if (!opened) co_return;
        link_ = std::make_shared<channel>(std::move(*opened));
        json hello = {{"node", settings_.node}, {"boot", "boot"}, {"gpus", 8}};
        (void)co_await link_->peer().write_frame(code(message::hello), std::move(hello));
        (void)co_await link_->peer().read_frame();
        link_->start();
        here_ = true;
        for (;;) {
            const auto frame = co_await link_->peer().read_frame();
            if (!frame) break;
            if (frame->type == code(message::sweep))
                requests_.push_back(frame->meta.at("request").get<std::uint64_t>());
        }
        over_ = true;
    }

    life& life_;
    const std::uint16_t port_;
    asio::thread_pool munge_{1};
    peer::settings settings_;
    std::shared_ptr<channel> link_;
    std::vector<std::uint64_t> requests_;
    bool here_ = false, over_ = false;
};

}  // namespace

TEST_CASE("a real agent sweeps its node for the controller, and a rule decides by what it found", "[fault]") {
    talk_bench b(true);
    b.rules = sweeping_rules();
    auto own = b.agent_settings();
    own.sweep_program = (b.dir / "sweep").string();
    std::ofstream(own.sweep_program) << R"(#!/bin/sh
echo '{"verdict":"unfit","checks":[{"check":"gpus","verdict":"unfit","what":["GPU 3 is lost"]}]}'
exit 1
)";
    ::chmod(own.sweep_program.c_str(), 0700);
    std::ofstream log(own.kmsg);
    life l(b);
    asio::thread_pool pool(2);
    agent a(l.io, pool, own, std::make_shared<metrics>());
    a.start();
    const auto& agents = l.c.look().agents.agents();
    REQUIRE(l.until([&] { return agents.contains("n03") && agents.at("n03").connected; }));
    log << gpu_line(3, "48, pid=1, name=p, DBE") << std::endl;
    CHECK(l.until([&] { return b.was_called("drain n03") && l.is_done(); }));
    REQUIRE(l.first());
    CHECK(l.first()->swept == "unfit");
    CHECK(l.first()->rule == "unfit");
    CHECK(results_of(*l.first(), "sweep") == "the node is unfit: gpus: GPU 3 is lost");
    pool.join();
}

TEST_CASE("what an agent answers of a sweep", "[fault]") {
    talk_bench b;
    b.rules = sweeping_rules();
    std::string swept, text;
    const auto* const how = GENERATE("fit", "no words", "number", "ill", "twice", "another's", "nobody's");
    CAPTURE(how);
    const std::string as(how);
    life l(b);
    hand_agent a(l, b), other(l, b, "n04");
    l.take({xid48()});
    const auto request = a.asked();
    if (as == "fit") {
        a.answer(request, "fit");
        swept = "fit", text = "the node is fit: it is fit";
    } else if (as == "no words") {
        a.say({{"request", request}, {"verdict", "unfit"}});
        swept = "unknown", text = "whether the node is fit is not known: its agent's answer makes no sense";
    } else if (as == "number") {
        a.say({{"request", request}, {"verdict", 1}, {"text", json::array()}});
        swept = "unknown", text = "whether the node is fit is not known: its agent's answer makes no sense";
    } else if (as == "ill") {
        a.say({{"request", request}, {"verdict", "ill"}, {"text", "\x1b[2J"}});
        swept = "unknown", text = "whether the node is fit is not known: \\x1b[2J";
    } else if (as == "twice") {
        a.answer(request, "fit");
        a.answer(request, "unfit");
        a.answer(request, "unfit");
        swept = "fit", text = "the node is fit: it is fit";
    } else if (as == "another's") {
        other.answer(request, "unfit");
        l.pass(100ms);
        a.answer(request, "fit");
        swept = "fit", text = "the node is fit: it is fit";
    } else {
        for (const auto& number : {json(request - 1), json(request + 1), json("x"), json(-1), json()})
            a.say({{"request", number}, {"verdict", "unfit"}, {"text", "x"}});
        a.answer(request, "fit");
        swept = "fit", text = "the node is fit: it is fit";
    }
    CHECK(l.until([&] { return l.is_done(); }));
    REQUIRE(l.first());
    CHECK(l.first()->swept == swept);
    CHECK(results_of(*l.first(), "sweep") == text);
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("an agent that never answers leaves its node unknown", "[fault]") {
    talk_bench b;
    b.rules = sweeping_rules();
    b.settings.sweep_timeout = b.settings.sweep_on_its_way = 100ms;
    life l(b);
    hand_agent a(l, b);
    l.take({xid48()});
    CHECK(l.until([&] { return l.is_done(); }));
    CHECK(results_of(*l.first(), "sweep") ==
          "whether the node is fit is not known: its agent did not answer in time");
    // Late, it changes nothing.
    a.answer(a.asked(), "unfit");
    l.pass(100ms);
    CHECK(l.first()->swept == "unknown");
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a sweep under way is answered over the agent's next connection", "[fault]") {
    talk_bench b;
    b.rules = sweeping_rules();
    life l(b);
    auto a = std::make_unique<hand_agent>(l, b);
    l.take({xid48()});
    const auto request = a->asked();
    a.reset();
    hand_agent back(l, b);
    back.answer(request, "unfit");
    CHECK(l.until([&] { return b.was_called("drain n03"); }));
}

TEST_CASE("a sweep that is under way is given up where more is asked for", "[fault]") {
    talk_bench b;
    b.rules = sweeping_rules();
    life l(b);
    hand_agent a(l, b);
    l.take({xid48()});
    const auto request = a.asked();
    l.take({b.xid79(2)});
    CHECK(l.until([&] { return b.was_called("down n03") && l.is_done(); }));
    a.answer(request, "fit");
    l.pass(100ms);
    CHECK(l.c.incidents().all().size() == 1);
    CHECK(l.first()->swept.empty());
    CHECK(results_of(*l.first(), "sweep").empty());
}

TEST_CASE("a controller waits for the agent, and takes no answer to what an earlier one asked", "[fault]") {
    talk_bench b;
    b.rules = sweeping_rules();
    std::uint64_t earlier = 0;
    {
        life l(b);
        hand_agent a(l, b);
        l.take({xid48()});
        earlier = a.asked();
        l.pass(1ms);  // no two controllers begin in the same
    }
    life l(b);
    l.pass(50ms);  // it goes on with the incident before the agent is there
    hand_agent a(l, b);
    const auto request = a.asked();
    CHECK(request != earlier);
    a.answer(earlier, "fit");  // of before the fault
    a.answer(request, "unfit");
    CHECK(l.until([&] { return b.was_called("drain n03") && l.is_done(); }));
    CHECK(l.first()->swept == "unfit");
}

TEST_CASE("an agent tells the NVLink domain of its node, and its lines carry it", "[fault]") {
    const std::string domain = "01234567-89ab-cdef-0123-456789abcdef.1";
    talk_bench b(true);
    auto own = b.agent_settings();
    own.look_program = (b.dir / "look").string();
    hardware::gpu_health gpu{.bus_id = "00000000:30:00.0"};
    gpu.nvlink_domain = domain;
    std::ofstream(own.look_program) << "#!/bin/sh\n[ $2 = gpus ] && echo '"
                                    << hardware::to_json(hardware::gpu_answers{gpu}).dump() << "'\n";
    ::chmod(own.look_program.c_str(), 0700);
    std::ofstream log(own.kmsg);
    life l(b);
    asio::thread_pool pool(2);
    agent a(l.io, pool, own, std::make_shared<metrics>());
    a.start();
    const auto& agents = l.c.look().agents.agents();
    REQUIRE(l.until([&] { return agents.contains("n03") && agents.at("n03").nvlink_domain == domain; }));
    log << gpu_line(3, "79, GPU has fallen off the bus.") << std::endl;
    REQUIRE(l.until([&] { return l.first() != nullptr; }));
    CHECK(l.first()->nvlink_domain == domain);
    pool.join();
}

TEST_CASE("an NVLink domain that makes no sense changes nothing of what is known", "[fault]") {
    const std::string domain = "01234567-89ab-cdef-0123-456789abcdef.1";
    talk_bench b;
    life l(b);
    hand_agent a(l, b);
    const auto& agents = l.c.look().agents.agents();
    const auto after = [&](json told) {
        static std::uint64_t queued = 0;
        json beat = {{"queued", ++queued}};
        if (!told.is_discarded()) beat["nvlink_domain"] = std::move(told);
        a.beat(std::move(beat));
        REQUIRE(l.until([&] { return agents.at("n03").queued == queued; }));
        return agents.at("n03").nvlink_domain;
    };
    CHECK(after(domain) == domain);
    CHECK(after(json(json::value_t::discarded)) == domain);  // it tells none: it does not know
    CHECK(after("garbage") == domain);
    CHECK(after(7) == domain);
    CHECK(after(json::array({domain})) == domain);
    CHECK(after(std::string(1'000, 'a')) == domain);
    CHECK(after("") == "");
}

}  // namespace test_sweep_talk
